use std::mem::take;
use std::sync::{Mutex, MutexGuard, PoisonError};

use netdyno_server::effects::Frame;
use tokio::sync::Notify;

/// Frames from other threads for the members of one thread. Any thread may add, its own takes.
pub struct Inbox {
    limit: usize,
    mail: Mutex<Mail>,
    filled: Notify,
    emptied: Notify,
}

#[derive(Default)]
struct Mail {
    frames: Vec<Frame>,
    bytes: usize,
    closed: bool,
}

impl Inbox {
    /// Small beside an outbox, as what an inbox holds reaches each member's outbox at once: a member that reads must not
    /// look slow for that.
    pub fn new(outbox_limit: usize) -> Inbox {
        let limit = (outbox_limit / 4).min(256 << 10);
        Inbox { limit, mail: Mutex::default(), filled: Notify::new(), emptied: Notify::new() }
    }

    /// Waits while more than the limit would be in it; one frame may always be.
    pub async fn add(&self, frame: &Frame) {
        loop {
            let emptied = self.emptied.notified();
            {
                let mut mail = self.mail();
                if mail.closed {
                    return;
                }
                if mail.frames.is_empty() || mail.bytes + frame.len() <= self.limit {
                    mail.bytes += frame.len();
                    mail.frames.push(Frame::clone(frame));
                    if mail.frames.len() == 1 {
                        self.filled.notify_one();
                    }
                    return;
                }
            }
            emptied.await;
        }
    }

    /// Waits until there is something, and moves all of it into `frames`, which is empty.
    pub async fn take(&self, frames: &mut Vec<Frame>) {
        self.filled.notified().await;
        let mut mail = self.mail();
        mail.bytes = 0;
        *frames = take(&mut mail.frames);
        drop(mail);
        self.emptied.notify_waiters();
    }

    /// Its thread is done: what is added from now on is thrown away.
    pub fn close(&self) {
        self.mail().closed = true;
        self.emptied.notify_waiters();
    }

    fn mail(&self) -> MutexGuard<'_, Mail> {
        self.mail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
