use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use netdyno_server::effects::Frame;
use netdyno_server::totals::Totals;
use tokio::sync::Notify;

use crate::member::Member;
use crate::room::Room;

/// The connected members. Any thread.
pub struct Members {
    totals: Arc<Totals>,
    list: Mutex<List>,
    one_left: Notify,
}

#[derive(Default)]
struct List {
    members: HashMap<usize, Arc<Member>>, // by its address
    snapshot: Option<Arc<[Arc<Member>]>>, // none when out of date
    ending: bool,
}

impl Members {
    pub fn new(totals: Arc<Totals>) -> Members {
        Members { totals, list: Mutex::default(), one_left: Notify::new() }
    }

    /// Posts to all members here but `except`.
    pub async fn post(&self, frame: &Frame, except: Option<&Arc<Member>>) {
        for member in self.snapshot().iter() {
            if !except.is_some_and(|except| Arc::ptr_eq(except, member)) {
                member.post(frame, &self.totals).await;
            }
        }
    }

    /// Ends all streams at what has arrived, and returns when all have left.
    pub async fn end(&self) {
        self.list().ending = true;
        for member in self.snapshot().iter() {
            member.tell_to_end();
        }
        while !self.list().members.is_empty() {
            self.one_left.notified().await;
        }
    }

    /// All members at this moment. Copied only when one has joined or left since the last call.
    fn snapshot(&self) -> Arc<[Arc<Member>]> {
        let mut list = self.list();
        let List { members, snapshot, .. } = &mut *list;
        Arc::clone(snapshot.get_or_insert_with(|| members.values().cloned().collect()))
    }

    fn list(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn address(member: &Arc<Member>) -> usize {
    Arc::as_ptr(member) as usize
}

impl Room for Members {
    fn join(&self, member: Arc<Member>) {
        let mut list = self.list();
        if list.ending {
            member.tell_to_end();
        }
        list.snapshot = None;
        list.members.insert(address(&member), member);
    }

    fn leave(&self, member: &Arc<Member>) {
        let mut list = self.list();
        list.snapshot = None;
        list.members.remove(&address(member));
        drop(list);
        self.one_left.notify_one();
    }

    async fn broadcast(&self, frame: &Frame, except: Option<&Arc<Member>>) {
        self.post(frame, except).await;
    }
}
