//! What every server in Rust shares: options, the work of a connection, totals, the first and the last line. It knows no
//! loop and no runtime.
pub mod effects;
pub mod lifecycle;
pub mod options;
pub mod session;
pub mod totals;

mod http;
mod protobuf;
mod search;
mod web;
mod work;
mod workloads;
