use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;

use netdyno_server::effects::{Frame, FRAME_OVERHEAD};
use netdyno_server::totals::Totals;
use tokio::sync::Notify;

/// Requests to a connection, from any thread. Its own task carries them out, and no other touches its socket.
pub struct Member {
    outbox_limit: usize,
    called: AtomicBool, // the task has not read `mail` since it was changed
    task: OnceLock<Waker>,
    mail: Mutex<Mail>,
    had_its_turn: Notify, // the task, while much waited
}

#[derive(Default)]
struct Mail {
    frames: Vec<Frame>,
    held: usize,  // by frames, and by those that were taken last
    taken: usize, // by the latter
    stuck: bool,  // in its last turn the task could send nothing, as the peer does not read
    closed: bool,
    news: News,
}

/// Notices to a connection.
#[derive(Clone, Copy, Default)]
pub struct News {
    pub too_slow: bool,
    pub end: bool,
}

impl Member {
    pub fn new(outbox_limit: usize) -> Member {
        // Starts as if called: a call before the task can be woken need not wake it.
        Member {
            outbox_limit,
            called: AtomicBool::new(true),
            task: OnceLock::new(),
            mail: Mutex::default(),
            had_its_turn: Notify::new(),
        }
    }

    /// The outbox: a frame to be sent with whatever else waits by then. A reader that does not read while more than the
    /// limit would wait is slow: it is given up and counted. One frame may always wait. While much waits, this waits for
    /// the connection's task to have its turn: a delay of that task is not the reader's fault.
    pub async fn post(&self, frame: &Frame, totals: &Totals) {
        while !self.add(frame) {
            self.turn().await;
            let mut mail = self.mail();
            if mail.stuck && !mail.closed {
                mail.news.too_slow = true;
                mail.close();
                totals.add_slow_closed();
            }
        }
        self.call();
        if self.has_much(&self.mail()) {
            self.turn().await;
        }
    }

    /// False, and nothing is taken, where more than the limit would wait.
    fn add(&self, frame: &Frame) -> bool {
        let mut mail = self.mail();
        if mail.closed {
            return true;
        }
        let held = frame.len() + FRAME_OVERHEAD;
        if mail.held > 0 && mail.held + held > self.outbox_limit {
            return false;
        }
        mail.held += held;
        mail.frames.push(frame.clone());
        true
    }

    /// Until less waits, or the task has found in a new turn that the peer does not read.
    async fn turn(&self) {
        self.mail().stuck = false;
        self.call();
        loop {
            let had_its_turn = self.had_its_turn.notified();
            {
                let mail = self.mail();
                if mail.stuck || !self.has_much(&mail) {
                    return;
                }
            }
            had_its_turn.await;
        }
    }

    fn has_much(&self, mail: &Mail) -> bool {
        !mail.closed && mail.held > self.outbox_limit / 2
    }

    /// Its stream ends at what has arrived; the session still answers that.
    pub fn tell_to_end(&self) {
        self.mail().news.end = true;
        self.call();
    }

    /// The connection's task says how to wake it, before it checks for news the first time, which clears `called`.
    pub(crate) fn is_served_by(&self, task: &Waker) {
        let _ = self.task.set(task.clone());
    }

    /// The notices since the last call.
    pub(crate) fn news(&self) -> Option<News> {
        // Cleared before the mail is read: a call after this wakes the task again.
        if !self.called.load(Ordering::Relaxed) || !self.called.swap(false, Ordering::AcqRel) {
            return None;
        }
        Some(self.mail().news)
    }

    /// Moves what waits into `frames`; all that was moved before is sent.
    pub(crate) fn take(&self, frames: &mut impl Extend<Frame>) {
        let mut mail = self.mail();
        if self.has_much(&mail) {
            self.had_its_turn.notify_waiters();
        }
        mail.held -= mail.taken;
        mail.taken = mail.held;
        mail.stuck = false;
        frames.extend(mail.frames.drain(..));
    }

    /// The task can send nothing, as the peer does not read.
    pub(crate) fn is_stuck(&self) {
        let mut mail = self.mail();
        if self.has_much(&mail) {
            mail.stuck = true;
            self.had_its_turn.notify_waiters();
        }
    }

    /// No more frames are taken; those that wait stay.
    pub(crate) fn close(&self) {
        self.mail().closed = true;
        self.had_its_turn.notify_waiters();
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
