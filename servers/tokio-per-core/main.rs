//! One runtime of one thread for each core; a connection stays on the thread that it was handed to.
mod inbox;

use std::net;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::Builder as ThreadBuilder;

use inbox::Inbox;
use netdyno_server::effects::Frame;
use netdyno_server::lifecycle::{
    accept, announce_ready, die, finish, is_exhausted, listen, termination_signals, EXHAUSTED_PAUSE, SHUTDOWN_GRACE,
};
use netdyno_server::options::Options;
use netdyno_server::totals::Totals;
use netdyno_tokio::{connection, wait_for_stop, watch, Member, Members, Room, Server};
use tokio::io::unix::AsyncFd;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::{unbounded_channel, UnboundedReceiver, UnboundedSender};
use tokio::time::{sleep, timeout};

/// The members connected to one thread, and the way to the other threads.
struct Core {
    members: Members,
    inboxes: Arc<[Inbox]>, // one for each thread
    own: usize,
}

impl Room for Core {
    fn join(&self, member: Arc<Member>) {
        self.members.join(member);
    }

    fn leave(&self, member: &Arc<Member>) {
        self.members.leave(member);
    }

    /// Sends to the members here, and once into the inbox of each other thread. Where one is full, the sender waits.
    async fn broadcast(&self, frame: &Frame, except: Option<&Arc<Member>>) {
        self.members.post(frame, except).await;
        for (index, inbox) in self.inboxes.iter().enumerate() {
            if index != self.own {
                inbox.add(frame).await;
            }
        }
    }
}

/// A thread: serves the connections it is handed until no more can come and all are done, or the grace is over.
async fn work(mut incoming: UnboundedReceiver<net::TcpStream>, server: Arc<Server<Core>>) {
    tokio::spawn(take_mail(Arc::clone(&server)));
    while let Some(stream) = incoming.recv().await {
        // Where the kernel has no room to watch it, it is closed.
        if let Ok(stream) = TcpStream::from_std(stream) {
            tokio::spawn(connection(stream, Arc::clone(&server)));
        }
    }
    let _ = timeout(SHUTDOWN_GRACE, server.room.members.end()).await;
    server.room.inboxes[server.room.own].close();
}

async fn take_mail(server: Arc<Server<Core>>) {
    let mut frames = Vec::new();
    loop {
        server.room.inboxes[server.room.own].take(&mut frames).await;
        for frame in frames.drain(..) {
            server.room.members.post(&frame, None).await;
        }
    }
}

/// The main thread: hands connections to the others in turn until a shutdown signal, so that each has its share
/// to within one. SO_REUSEPORT would deal them out by addresses and ports, as luck has it.
async fn accept_until_stopped(
    listener: net::TcpListener,
    signals: OwnedFd,
    cores: Vec<UnboundedSender<net::TcpStream>>,
) {
    let accepting = tokio::spawn(async move {
        // Not Tokio's listener, which would watch what it accepts on this thread first.
        let listener = watch(listener);
        for core in cores.iter().cycle() {
            let _ = core.send(accept_next(&listener).await);
        }
    });
    wait_for_stop(signals).await;
    accepting.abort();
    let _ = accepting.await; // the cores have no sender now
}

async fn accept_next(listener: &AsyncFd<OwnedFd>) -> net::TcpStream {
    loop {
        let Ok(mut guard) = listener.readable().await else { continue };
        match guard.try_io(accept) {
            Ok(Ok(stream)) => return stream,
            Ok(Err(error)) if is_exhausted(&error) => sleep(EXHAUSTED_PAUSE).await,
            _ => {} // no connection waits, or the error concerns that peer alone
        }
    }
}

fn runtime() -> Runtime {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.unwrap_or_else(|error| die(format_args!("cannot start a runtime: {error}")))
}

fn main() {
    let options = Arc::new(Options::from_launcher());
    let signals = termination_signals();
    let listener = listen(&options);
    let totals = Arc::new(Totals::new());
    let inboxes: Arc<[Inbox]> = (0..options.threads).map(|_| Inbox::new(options.outbox_limit)).collect();
    let main_runtime = runtime(); // all that they open is open before the ready line
    let mut cores = Vec::new();
    let mut threads = Vec::new();
    for own in 0..options.threads {
        let room = Core { members: Members::new(Arc::clone(&totals)), inboxes: Arc::clone(&inboxes), own };
        let server = Arc::new(Server { options: Arc::clone(&options), totals: Arc::clone(&totals), room });
        let (sender, incoming) = unbounded_channel();
        let own_runtime = runtime();
        let thread = ThreadBuilder::new().spawn(move || own_runtime.block_on(work(incoming, server)));
        threads.push(thread.unwrap_or_else(|error| {
            die(format_args!("cannot start a thread: {error}; ask for fewer --threads, or raise ulimit -u"))
        }));
        cores.push(sender);
    }
    announce_ready(&listener);

    main_runtime.block_on(accept_until_stopped(listener, signals, cores));
    for thread in threads {
        let _ = thread.join();
    }
    finish(&totals);
}
