//! From the first line of a server's life to its last.
use std::fmt::Display;
use std::io::{self, Write};
use std::mem::MaybeUninit;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::process::exit;
use std::time::{Duration, Instant};

use socket2::{Domain, SockRef, Socket, Type};

use crate::options::Options;
use crate::totals::Totals;

/// How long a server may still work on what is in flight after a shutdown signal.
pub const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);

/// How long to wait before accepting again when descriptors or memory ran out: the queue is still full.
pub const EXHAUSTED_PAUSE: Duration = Duration::from_millis(10);

/// Ends the program: set-up cannot go on.
pub fn die(message: impl Display) -> ! {
    eprintln!("{}: {message}", program());
    exit(1);
}

fn program() -> String {
    let path = std::env::args_os().next().unwrap_or_default().to_string_lossy().into_owned();
    path.rsplit('/').next().unwrap_or_default().to_string()
}

/// Blocks SIGTERM and SIGINT in this thread and all that it starts, and returns a non-blocking signalfd(2) that becomes
/// readable when SIGTERM or SIGINT arrives. Call it before any thread starts.
pub fn termination_signals() -> OwnedFd {
    let mut signals = MaybeUninit::uninit();
    // SAFETY: sigemptyset(3) initialises the set; signalfd(2) returns a descriptor that has no other owner.
    let fd = unsafe {
        libc::sigemptyset(signals.as_mut_ptr());
        let mut signals = signals.assume_init();
        libc::sigaddset(&mut signals, libc::SIGTERM);
        libc::sigaddset(&mut signals, libc::SIGINT);
        libc::pthread_sigmask(libc::SIG_BLOCK, &signals, std::ptr::null_mut());
        libc::signalfd(-1, &signals, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
    };
    if fd < 0 {
        die(format_args!("signalfd: {}", io::Error::last_os_error()));
    }
    // SAFETY: as above.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// A non-blocking listener, or a hint at why there is none.
pub fn listen(options: &Options) -> TcpListener {
    listen_at(options, options.port, false)
}

/// A listener for each thread, which blocks, all on one port (SO_REUSEPORT, socket(7)): the kernel gives each connection
/// to one of them, by a hash of both addresses and ports. The first has the port alone when it is bound: else another
/// server could have it, too, and would get some of the connections.
pub fn listen_for_each_thread(options: &Options) -> Vec<TcpListener> {
    let first = listen(options);
    let _ = SockRef::from(&first).set_reuse_port(true); // without it, the next one says so
    let port = first.local_addr().map_or(0, |address| address.port());
    let mut listeners = vec![first];
    listeners.extend((1..options.threads).map(|_| listen_at(options, port, true)));
    for listener in &listeners {
        let _ = listener.set_nonblocking(false);
    }
    listeners
}

fn listen_at(options: &Options, port: u16, shares_port: bool) -> TcpListener {
    let host = &options.host;
    let address = match (host.as_str(), port).to_socket_addrs().map(|mut all| all.next()) {
        Ok(Some(address)) => address,
        Ok(None) => die(format_args!("cannot resolve '{host}'")),
        Err(error) => die(format_args!("cannot resolve '{host}': {error}")),
    };
    try_listen(address, options.backlog, shares_port).unwrap_or_else(|error| {
        let hint = match error.raw_os_error() {
            Some(libc::EADDRINUSE) => "; another program listens there: choose another port, or port 0 for a free one",
            Some(libc::EACCES) => "; ports below 1024 need rights: choose a higher one",
            Some(libc::EADDRNOTAVAIL) => "; that address is not one of this machine's",
            _ => "",
        };
        die(format_args!("cannot listen on {}{hint}: {error}", url(address)));
    })
}

fn try_listen(address: SocketAddr, backlog: i32, shares_port: bool) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM.nonblocking().cloexec(), None)?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(shares_port)?;
    socket.bind(&address.into())?;
    socket.listen(backlog)?;
    Ok(socket.into())
}

/// An IPv6 address stands in brackets, without what SocketAddr says of its zone.
fn url(address: SocketAddr) -> String {
    match address {
        SocketAddr::V4(address) => format!("tcp://{address}"),
        SocketAddr::V6(address) => format!("tcp://[{}]:{}", address.ip(), address.port()),
    }
}

fn print_line(line: &str) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush()); // without a listener it is lost
}

/// Prints the one line that says the server accepts.
pub fn announce_ready(listener: &TcpListener) {
    let address = listener.local_addr().unwrap_or_else(|error| die(format_args!("getsockname: {error}")));
    print_line(&format!(r#"{{"ready":true,"endpoint":"{}","pid":{}}}"#, url(address), std::process::id()));
}

/// Prints the one line of totals and ends the program, whatever its threads still do.
pub fn finish(totals: &Totals) -> ! {
    print_line(&totals.json());
    exit(0);
}

/// accept(2): a non-blocking socket.
pub fn accept(listener: &impl AsRawFd) -> io::Result<TcpStream> {
    let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: the address is not asked for; the descriptor that accept4(2) returns has no other owner.
    unsafe {
        match libc::accept4(listener.as_raw_fd(), std::ptr::null_mut(), std::ptr::null_mut(), flags) {
            fd @ 0.. => Ok(TcpStream::from_raw_fd(fd)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Whether accept(2) failed because descriptors or memory ran out. Other errors concern one peer alone.
pub fn is_exhausted(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM))
}

/// TCP_NODELAY as asked. An error (the peer is gone already) is left to the next read.
pub fn set_nodelay(stream: &impl AsFd, on: bool) {
    let _ = SockRef::from(stream).set_tcp_nodelay(on);
}

/// Whether the kernel takes bytes for the peer now: a peer that reads leaves room for more.
pub fn takes_more(stream: &impl AsRawFd) -> bool {
    let mut watched = libc::pollfd { fd: stream.as_raw_fd(), events: libc::POLLOUT, revents: 0 };
    // SAFETY: poll(2) writes the one pollfd.
    unsafe { libc::poll(&mut watched, 1, 0) == 1 && watched.revents == libc::POLLOUT }
}

/// What has arrived can still be read, and after it the end.
pub fn stop_receiving(stream: &impl AsFd) {
    let _ = SockRef::from(stream).shutdown(Shutdown::Read);
}

/// Call before closing a socket: ends the sending side, and throws away what has arrived. A close with unread input
/// resets the connection (RFC 1122, 4.2.2.13), and a peer that is reset may lose the replies under way to it (RFC 9112,
/// 9.6).
pub fn end_stream(stream: &impl AsFd) {
    const MOST_READS: usize = 256; // a peer that sends on and on is reset after all
    let socket = SockRef::from(stream);
    let _ = socket.shutdown(Shutdown::Write);
    let mut scrap = [MaybeUninit::uninit(); 16 << 10];
    for _ in 0..MOST_READS {
        if !matches!(socket.recv(&mut scrap), Ok(1..)) {
            break;
        }
    }
}

fn thread_cpu_time() -> Duration {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: clock_gettime(2) writes the timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut now) };
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// Keeps this thread's core busy for so long of its own CPU time (so being preempted does not count as work).
pub fn burn_cpu(duration: Duration) {
    let end = thread_cpu_time() + duration;
    // The thread's CPU clock is a system call and would make kernel work of it; the monotonic clock is read in user mode
    // (vdso(7)). So it spins on that one, and asks the other only whether it was preempted meanwhile.
    let mut left = duration;
    while !left.is_zero() {
        let until = Instant::now() + left;
        while Instant::now() < until {}
        left = end.saturating_sub(thread_cpu_time());
    }
}
