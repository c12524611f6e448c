//! Code shared by the Tokio servers: a connection as a task, and the list of members. Each server has its own runtimes,
//! and assigns connections to them.
mod connection;
mod member;
mod members;
mod room;
mod run;

pub use connection::connection;
pub use member::Member;
pub use members::Members;
pub use room::{Room, Server};
pub use run::{run, wait_for_stop, watch};
