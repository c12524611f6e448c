use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;

use netdyno_server::effects::Frame;
use netdyno_server::totals::Totals;

/// What others may ask of a connection, from any thread. Its own task does it, and nobody else touches its socket.
pub struct Member {
    outbox_limit: usize,
    called: AtomicBool, // the task has not looked into `mail` since somebody changed it
    task: OnceLock<Waker>,
    mail: Mutex<Mail>,
}

#[derive(Default)]
struct Mail {
    frames: Vec<Frame>,
    bytes: usize, // of frames
    closed: bool,
    news: News,
}

/// What a connection is told.
#[derive(Clone, Copy, Default)]
pub struct News {
    pub too_slow: bool,
    pub end: bool,
}

impl Member {
    pub fn new(outbox_limit: usize) -> Member {
        // As if it were called: who calls before the task can be woken needs nobody to be woken.
        Member { outbox_limit, called: AtomicBool::new(true), task: OnceLock::new(), mail: Mutex::default() }
    }

    /// The outbox: a frame to be sent with whatever else waits by then. A reader for whom more than the limit would wait
    /// is slow: it is given up and counted. One frame may always wait.
    pub fn post(&self, frame: &Frame, totals: &Totals) {
        let mut mail = self.mail();
        if mail.closed {
            return;
        }
        if mail.bytes > 0 && mail.bytes + frame.len() > self.outbox_limit {
            mail.news.too_slow = true;
            mail.close();
            totals.add_slow_closed();
        } else {
            mail.bytes += frame.len();
            mail.frames.push(frame.clone());
        }
        drop(mail);
        self.call();
    }

    /// Its stream ends at what has arrived; the session still answers that.
    pub fn tell_to_end(&self) {
        self.mail().news.end = true;
        self.call();
    }

    /// The connection's task says how to wake it, before it looks for news the first time, which clears `called`.
    pub(crate) fn is_served_by(&self, task: &Waker) {
        let _ = self.task.set(task.clone());
    }

    /// What is new since the last time.
    pub(crate) fn news(&self) -> Option<News> {
        // Cleared before the mail is read: who calls after this wakes the task again.
        if !self.called.load(Ordering::Relaxed) || !self.called.swap(false, Ordering::AcqRel) {
            return None;
        }
        Some(self.mail().news)
    }

    /// Moves what waits into `frames`.
    pub(crate) fn take(&self, frames: &mut impl Extend<Frame>) {
        let mut mail = self.mail();
        mail.bytes = 0;
        frames.extend(mail.frames.drain(..));
    }

    /// No more frames are taken; those that wait stay.
    pub(crate) fn close(&self) {
        self.mail().closed = true;
    }

    fn call(&self) {
        if !self.called.swap(true, Ordering::AcqRel) {
            if let Some(task) = self.task.get() {
                task.wake_by_ref();
            }
        }
    }

    fn mail(&self) -> MutexGuard<'_, Mail> {
        self.mail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Mail {
    fn close(&mut self) {
        self.closed = true;
        self.frames = Vec::new();
    }
}
