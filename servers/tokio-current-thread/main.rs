//! Tokio's runtime of one thread: a task per connection.
use std::sync::Arc;

use netdyno_server::lifecycle::{die, finish, listen, termination_signals};
use netdyno_server::options::Options;
use netdyno_server::totals::Totals;
use netdyno_tokio::{run, Members, Server};
use tokio::runtime::Builder;

fn main() {
    let options = Arc::new(Options::from_launcher());
    let signals = termination_signals();
    let listener = listen(&options);
    let totals = Arc::new(Totals::new());
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.unwrap_or_else(|error| die(format_args!("cannot start the runtime: {error}")));
    let room = Members::new(Arc::clone(&totals));
    runtime.block_on(run(listener, signals, Arc::new(Server { options, totals: Arc::clone(&totals), room })));
    finish(&totals);
}
