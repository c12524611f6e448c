use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::{poll_fn, Future};
use std::io::{self, IoSlice};
use std::pin::{pin, Pin};
use std::sync::Arc;
use std::task::{ready, Context, Poll};
use std::time::Duration;

use netdyno_server::effects::{Effect, Effects, Frame, HEADER};
use netdyno_server::lifecycle::{burn_cpu, end_stream, set_nodelay, stop_receiving, takes_more};
use netdyno_server::session::Session;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::task::yield_now;
use tokio::time::sleep;

use crate::member::Member;
use crate::room::{Room, Server};

const BURN_SLICE: Duration = Duration::from_millis(10);
const MOST_GATHERED: usize = 64;

thread_local! {
    /// For all connections of a thread: what a read brought is given to the session before anything waits.
    static READ_BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Lets `stream` in, and returns the task that serves it from its first byte to its last.
pub fn connection<R: Room>(stream: TcpStream, server: Arc<Server<R>>) -> impl Future<Output = ()> + Send {
    set_nodelay(&stream, server.options.nodelay);
    server.totals.add_connection();
    let member = Arc::new(Member::new(server.options.outbox_limit));
    server.room.join(Arc::clone(&member));
    serve(stream, member, server)
}

async fn serve<R: Room>(stream: TcpStream, member: Arc<Member>, server: Arc<Server<R>>) {
    // A task of Tokio has one waker for all its life.
    poll_fn(|context| Poll::Ready(member.is_served_by(context.waker()))).await;
    let session = Session::new(&server.options, &server.totals);
    let mut socket = Socket { stream, server: &server, member: &member, session, sending: VecDeque::new(), sent: 0 };
    if socket.converse().await.is_ok() && socket.send_the_rest().await.is_ok() {
        end_stream(&socket.stream);
    }
    drop(socket);
    member.close();
    server.room.leave(&member);
}

/// A connection, of its task only. An error means that nothing can be sent any more.
struct Socket<'a, R> {
    stream: TcpStream,
    server: &'a Server<R>,
    member: &'a Arc<Member>,
    session: Session,
    sending: VecDeque<Frame>, // taken from the outbox; it is asked again when all are sent
    sent: usize,              // bytes of the first
}

impl<R: Room> Socket<'_, R> {
    async fn converse(&mut self) -> io::Result<()> {
        let options = &self.server.options;
        let mut effects = Effects::new(options.split);
        loop {
            effects.clear();
            poll_fn(|context| self.poll_input(context, &mut effects)).await?;
            for effect in effects.list() {
                match effect {
                    Effect::Write(range) => self.send(effects.bytes(range)).await?,
                    Effect::Broadcast(frame) => {
                        let except = (!options.to_all).then_some(self.member);
                        self.say(frame, except).await?;
                    }
                    Effect::Wait(duration) => self.wait(*duration).await?,
                    Effect::Burn(duration) => burn(*duration).await,
                    Effect::Close => return Ok(()),
                }
            }
        }
    }

    /// Lets the time pass, or returns an error at once when the peer resets. Where more has come than is read yet, a reset
    /// is noticed by the next read.
    async fn wait(&mut self, duration: Duration) -> io::Result<()> {
        let mut time = pin!(sleep(duration));
        let mut watches = true;
        poll_fn(|context| {
            if time.as_mut().poll(context).is_ready() {
                return Poll::Ready(Ok(()));
            }
            if watches {
                let mut first = [0];
                match Pin::new(&mut self.stream).poll_peek(context, &mut ReadBuf::new(&mut first)) {
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    Poll::Ready(Ok(_)) => watches = false,
                    Poll::Pending => {}
                }
            }
            Poll::Pending
        })
        .await
    }

    /// Says it to the others. While that waits for one of them, what they say is sent: no two wait for each other.
    async fn say(&mut self, frame: &Frame, except: Option<&Arc<Member>>) -> io::Result<()> {
        let server = self.server;
        let mut said = pin!(server.room.broadcast(frame, except));
        let mut sends = Ok(());
        poll_fn(|context| {
            if said.as_mut().poll(context).is_ready() {
                return Poll::Ready(());
            }
            if sends.is_ok() {
                if let Poll::Ready(Err(error)) = self.poll_outbox(context) {
                    self.member.close();
                    sends = Err(error);
                }
            }
            Poll::Pending
        })
        .await;
        sends
    }

    /// One read, and what the session makes of it. What others say meanwhile is sent.
    fn poll_input(&mut self, context: &mut Context, effects: &mut Effects) -> Poll<io::Result<()>> {
        if let Poll::Ready(Err(error)) = self.poll_outbox(context) {
            return Poll::Ready(Err(error));
        }
        READ_BUFFER.with_borrow_mut(|buffer| {
            buffer.resize(self.server.options.read_buffer, 0);
            let mut read = ReadBuf::new(buffer);
            ready!(Pin::new(&mut self.stream).poll_read(context, &mut read))?;
            match read.filled() {
                [] => self.session.end(effects),
                bytes => self.session.receive(bytes, effects),
            }
            Poll::Ready(Ok(()))
        })
    }

    /// Ready when nothing waits to be sent.
    fn poll_outbox(&mut self, context: &mut Context) -> Poll<io::Result<()>> {
        if let Some(news) = self.member.news() {
            if news.too_slow {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            if news.end {
                stop_receiving(&self.stream);
            }
            if self.sending.is_empty() {
                self.member.take(&mut self.sending);
            }
        }
        while !self.sending.is_empty() {
            let Poll::Ready(written) = self.poll_write_some(context) else {
                // Tokio may have this task wait for its next turn though the peer reads.
                if !takes_more(&self.stream) {
                    self.member.is_stuck();
                }
                return Poll::Pending;
            };
            let bytes = written?;
            self.server.totals.add_bytes_out(bytes);
            self.took(bytes);
            if self.sending.is_empty() {
                self.member.take(&mut self.sending);
            }
        }
        Poll::Ready(Ok(()))
    }

    /// One system call: all that is to be sent (gathered and joined), or the part (split) or frame (single) at the front.
    fn poll_write_some(&mut self, context: &mut Context) -> Poll<io::Result<usize>> {
        let stream = Pin::new(&mut self.stream);
        let first = &self.sending[0][self.sent..];
        if self.server.options.split {
            let part = if self.sent < HEADER { &first[..HEADER - self.sent] } else { first };
            return stream.poll_write(context, part);
        }
        let mut parts = [IoSlice::new(&[]); MOST_GATHERED];
        let most = if self.server.options.single { 1 } else { MOST_GATHERED };
        let count = self.sending.len().min(most);
        for (part, frame) in parts.iter_mut().zip(&self.sending) {
            *part = IoSlice::new(frame);
        }
        parts[0] = IoSlice::new(first);
        stream.poll_write_vectored(context, &parts[..count])
    }

    fn took(&mut self, bytes: usize) {
        self.sent += bytes;
        while let Some(first) = self.sending.front() {
            if self.sent < first.len() {
                break;
            }
            self.sent -= first.len();
            self.sending.pop_front();
        }
    }

    /// Back-pressure: a client that takes no replies is not read.
    async fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let sent = poll_fn(|context| Pin::new(&mut self.stream).poll_write(context, bytes)).await?;
            self.server.totals.add_bytes_out(sent);
            bytes = &bytes[sent..];
        }
        Ok(())
    }

    /// Sends the frames that came for this client before its session closed.
    async fn send_the_rest(&mut self) -> io::Result<()> {
        self.member.close();
        poll_fn(|context| self.poll_outbox(context)).await
    }
}

/// Burns CPU on the thread that the task is on. Longer work lets the runtime turn between two slices, as Tokio's guide
/// has it: nothing else happens on this thread meanwhile.
async fn burn(mut duration: Duration) {
    while duration > BURN_SLICE {
        burn_cpu(BURN_SLICE);
        yield_now().await;
        duration -= BURN_SLICE;
    }
    burn_cpu(duration);
}
