use std::net;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use netdyno_server::lifecycle::{announce_ready, die, is_exhausted, EXHAUSTED_PAUSE, SHUTDOWN_GRACE};
use tokio::io::unix::AsyncFd;
use tokio::io::Interest;
use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};

use crate::connection::connection;
use crate::members::Members;
use crate::room::Server;

/// Serves on the runtime that calls it, a task for each connection, until a shutdown signal has come and all
/// connections are done or the grace is over.
pub async fn run(listener: net::TcpListener, signals: OwnedFd, server: Arc<Server<Members>>) {
    announce_ready(&listener);
    let accepting = tokio::spawn(accept_all(listener, Arc::clone(&server)));
    wait_for_stop(signals).await;
    accepting.abort();
    let _ = accepting.await; // no connection is accepted from here on
    let _ = timeout(SHUTDOWN_GRACE, server.room.end()).await;
}

async fn accept_all(listener: net::TcpListener, server: Arc<Server<Members>>) {
    let listener = TcpListener::from_std(listener).unwrap_or_else(|error| die(format_args!("epoll: {error}")));
    loop {
        match listener.accept().await {
            Ok((stream, _)) => drop(tokio::spawn(connection(stream, Arc::clone(&server)))),
            Err(error) if is_exhausted(&error) => sleep(EXHAUSTED_PAUSE).await,
            Err(_) => {} // it concerns that peer alone
        }
    }
}

/// Returns when `signals` (lifecycle::termination_signals) has one.
pub async fn wait_for_stop(signals: OwnedFd) {
    let _ = watch(signals).readable().await;
}

/// A descriptor of any kind, watched by the runtime that calls it until it can be read.
pub fn watch(descriptor: impl Into<OwnedFd>) -> AsyncFd<OwnedFd> {
    // SAFETY: it is open as long as the OwnedFd is there, which the AsyncFd owns.
    let watched = unsafe { AsyncFd::register_with_interest(descriptor.into(), Interest::READABLE) };
    watched.unwrap_or_else(|error| die(format_args!("epoll: {error}")))
}
