use std::future::Future;
use std::sync::Arc;

use netdyno_server::effects::Frame;
use netdyno_server::options::Options;
use netdyno_server::totals::Totals;

use crate::member::Member;

/// Where connections meet: all of a server's, or those of one thread.
pub trait Room: Send + Sync + 'static {
    fn join(&self, member: Arc<Member>);
    fn leave(&self, member: &Arc<Member>);
    /// Hands `frame` to all members but `except`, on whatever thread they are.
    fn broadcast(&self, frame: &Frame, except: Option<&Arc<Member>>) -> impl Future<Output = ()> + Send;
}

/// State shared by the connections of a room.
pub struct Server<R> {
    pub options: Arc<Options>,
    pub totals: Arc<Totals>,
    pub room: R,
}
