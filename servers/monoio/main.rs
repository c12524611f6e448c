//! monoio: a runtime of one thread over io_uring for each core, which accepts for itself (SO_REUSEPORT); a task per
//! connection, which stays on its thread.
use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::future::{pending, poll_fn, Future};
use std::io;
use std::mem::{replace, ManuallyDrop};
use std::net;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream as StopEnd;
use std::pin::pin;
use std::rc::Rc;
use std::sync::{mpsc, Arc};
use std::task::{Poll, Waker};
use std::thread::Builder as ThreadBuilder;
use std::time::Duration;

use monoio::buf::IoBuf;
use monoio::io::{AsyncReadRent, AsyncWriteRent};
use monoio::net::{TcpListener, TcpStream, UnixStream};
use monoio::time::sleep;
use monoio::{spawn, IoUringDriver, RuntimeBuilder};
use netdyno_server::effects::{Effect, Effects};
use netdyno_server::lifecycle::{
    announce_ready, burn_cpu, die, end_stream, finish, is_exhausted, listen_for_each_thread, set_nodelay,
    stop_receiving, termination_signals, EXHAUSTED_PAUSE, SHUTDOWN_GRACE,
};
use netdyno_server::options::{Options, Workload};
use netdyno_server::session::Session;
use netdyno_server::totals::Totals;

const BURN_SLICE: Duration = Duration::from_millis(10);

/// State shared by the connections of one thread.
struct Core {
    options: Arc<Options>,
    totals: Arc<Totals>,
    open: RefCell<HashSet<RawFd>>,
    one_left: RefCell<Option<Waker>>,
    ending: Cell<bool>,
    turn: UnixStream, // always writable
    _other_end: StopEnd,
}

/// Returns when one of the two is done; the other is dropped, which cancels it.
async fn race<T>(one: impl Future<Output = T>, other: impl Future<Output = T>) -> T {
    let (mut one, mut other) = (pin!(one), pin!(other));
    poll_fn(|context| match one.as_mut().poll(context) {
        Poll::Pending => other.as_mut().poll(context),
        done => done,
    })
    .await
}

/// The standard library's calls on a socket that is not theirs to close.
fn calls_on(fd: RawFd) -> ManuallyDrop<net::TcpStream> {
    // SAFETY: its owner has it open for as long as this is used, and closes it.
    ManuallyDrop::new(unsafe { net::TcpStream::from_raw_fd(fd) })
}

impl Core {
    /// Lets the runtime turn once. By asking the kernel: while a task is ready, monoio checks no timer.
    async fn take_turn(&self) {
        let _ = self.turn.writable(false).await;
    }

    async fn accept_all(self: &Rc<Core>, listener: &TcpListener) {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => drop(spawn(serve(stream, Rc::clone(self)))),
                Err(error) if is_exhausted(&error) => sleep(EXHAUSTED_PAUSE).await,
                Err(_) => {} // it concerns that peer alone
            }
        }
    }

    /// Ends every stream at what has arrived, and returns when all connections are done.
    async fn end(&self) {
        self.ending.set(true);
        for fd in self.open.borrow().iter() {
            stop_receiving(&*calls_on(*fd));
        }
        poll_fn(|context| {
            if self.open.borrow().is_empty() {
                return Poll::Ready(());
            }
            *self.one_left.borrow_mut() = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

/// A connection, from its first byte to its last.
async fn serve(stream: TcpStream, core: Rc<Core>) {
    let fd = stream.as_raw_fd();
    let socket = calls_on(fd);
    set_nodelay(&*socket, core.options.nodelay);
    core.totals.add_connection();
    core.open.borrow_mut().insert(fd);
    if core.ending.get() {
        stop_receiving(&*socket);
    }
    let mut connection = Connection { stream, core: &core, output: Vec::new() };
    if connection.converse().await.is_ok() {
        let _ = socket.set_nonblocking(true); // what has arrived is thrown away, and no more is waited for
        end_stream(&*socket);
    }
    core.open.borrow_mut().remove(&fd);
    if let Some(waker) = core.one_left.take() {
        waker.wake();
    }
}

/// An error means that nothing can be sent any more.
struct Connection<'a> {
    stream: TcpStream,
    core: &'a Core,
    output: Vec<u8>, // the kernel owns it while it is sent
}

impl Connection<'_> {
    async fn converse(&mut self) -> io::Result<()> {
        let options = &self.core.options;
        let mut session = Session::new(options, &self.core.totals);
        let mut effects = Effects::new(options.split);
        let mut input = Vec::with_capacity(options.read_buffer);
        loop {
            effects.clear();
            input.clear();
            let (read, filled) = self.stream.read(input).await;
            input = filled;
            match read? {
                0 => session.end(&mut effects),
                size => session.receive(&input[..size], &mut effects),
            }
            for effect in effects.list() {
                match effect {
                    Effect::Write(range) => self.send(effects.bytes(range)).await?,
                    Effect::Wait(duration) => self.wait(*duration).await?,
                    Effect::Burn(duration) => self.burn(*duration).await,
                    Effect::Broadcast(_) => unreachable!("of chat"),
                    Effect::Close => return Ok(()),
                }
            }
        }
    }

    /// Back-pressure: a client that takes no replies is not read.
    async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut output = replace(&mut self.output, Vec::new());
        output.clear();
        output.extend_from_slice(bytes);
        let mut sent = 0;
        while sent < bytes.len() {
            let (wrote, rest) = self.stream.write(output.slice(sent..)).await;
            output = rest.into_inner();
            let size = wrote?;
            self.core.totals.add_bytes_out(size);
            sent += size;
        }
        self.output = output;
        Ok(())
    }

    /// Burns CPU on the thread that the task is on, and lets the runtime turn between two slices, as Tokio's guide has it.
    async fn burn(&self, mut duration: Duration) {
        while duration > BURN_SLICE {
            burn_cpu(BURN_SLICE);
            self.core.take_turn().await;
            duration -= BURN_SLICE;
        }
        burn_cpu(duration);
    }

    /// Lets the time pass, or returns an error at once when the peer resets.
    async fn wait(&self, duration: Duration) -> io::Result<()> {
        let passes = async {
            sleep(duration).await;
            Ok(())
        };
        race(passes, self.is_reset()).await
    }

    /// Where more has come than is read yet, a reset is noticed by the next read.
    async fn is_reset(&self) -> io::Result<()> {
        self.stream.readable(false).await?;
        calls_on(self.stream.as_raw_fd()).peek(&mut [0])?;
        pending().await
    }
}

/// A thread: serves until the other end of `stop` is closed, and all connections are done or the grace is over.
async fn run(listener: TcpListener, mut stop: UnixStream, core: Rc<Core>, ready: mpsc::Sender<()>) {
    let _ = ready.send(());
    let stopped = async {
        let _ = stop.read(vec![0]).await;
    };
    race(core.accept_all(&listener), stopped).await;
    drop(listener);
    race(core.end(), sleep(SHUTDOWN_GRACE)).await;
}

/// Starts that thread's runtime. What it takes of the kernel it has before `ready` gets a word.
fn start(
    listener: net::TcpListener,
    stop: StopEnd,
    options: Arc<Options>,
    totals: Arc<Totals>,
    ready: mpsc::Sender<()>,
) -> io::Result<()> {
    RuntimeBuilder::<IoUringDriver>::new().enable_timer().build()?.block_on(async move {
        let (turn, _other_end) = StopEnd::pair()?;
        let (listener, stop) = (TcpListener::from_std(listener)?, UnixStream::from_std(stop)?);
        let turn = UnixStream::from_std(turn)?;
        let (open, one_left, ending) = Default::default();
        run(listener, stop, Rc::new(Core { options, totals, open, one_left, ending, turn, _other_end }), ready).await;
        Ok(())
    })
}

fn wait_for_stop(signals: &OwnedFd) {
    let mut watched = libc::pollfd { fd: signals.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: poll(2) writes the one pollfd.
    while unsafe { libc::poll(&mut watched, 1, -1) } <= 0 {}
}

fn main() {
    let options = Arc::new(Options::from_launcher());
    if options.workload == Workload::Chat {
        eprintln!("monoio: --workload: chat needs the clients of other threads; use another workload");
        std::process::exit(2);
    }
    let signals = termination_signals();
    let totals = Arc::new(Totals::new());
    let listeners = listen_for_each_thread(&options);
    let first = listeners[0].try_clone().unwrap_or_else(|error| die(format_args!("dup: {error}")));
    let (ready, is_ready) = mpsc::channel();
    let mut stops = Vec::new();
    let mut threads = Vec::new();
    for listener in listeners {
        let (stop, end) = StopEnd::pair().unwrap_or_else(|error| die(format_args!("socketpair: {error}")));
        stops.push(stop);
        let (options, totals, ready) = (Arc::clone(&options), Arc::clone(&totals), ready.clone());
        let thread = ThreadBuilder::new().spawn(move || {
            start(listener, end, options, totals, ready).unwrap_or_else(|error| die(format_args!("io_uring: {error}")));
        });
        threads.push(thread.unwrap_or_else(|error| {
            die(format_args!("cannot start a thread: {error}; ask for fewer --threads, or raise ulimit -u"))
        }));
    }
    for _ in &threads {
        let _ = is_ready.recv();
    }
    announce_ready(&first);
    drop(first);

    wait_for_stop(&signals);
    drop(stops);
    for thread in threads {
        let _ = thread.join();
    }
    finish(&totals);
}
