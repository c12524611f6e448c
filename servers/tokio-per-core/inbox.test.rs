//! An inbox is bounded: a sender waits while it is full. Futures are polled by hand, so no time passes.
#[path = "inbox.rs"]
mod inbox;

use std::future::Future;
use std::pin::{pin, Pin};
use std::task::{Context, Waker};

use inbox::Inbox;
use netdyno_server::effects::Frame;

const LIMIT: usize = 100;

fn inbox() -> Inbox {
    Inbox::new(LIMIT * 4)
}

fn frame(size: usize) -> Frame {
    vec![b'x'; size].into()
}

fn is_done(future: Pin<&mut impl Future>) -> bool {
    future.poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

#[test]
fn who_finds_it_full_waits_until_it_is_emptied() {
    let inbox = inbox();
    let (first, second) = (frame(LIMIT), frame(1));
    assert!(is_done(pin!(inbox.add(&first))));
    let mut waiting = pin!(inbox.add(&second));
    assert!(!is_done(waiting.as_mut()));
    let mut taken = Vec::new();
    assert!(is_done(pin!(inbox.take(&mut taken))));
    assert_eq!(taken, [first.clone()]);
    assert!(is_done(waiting));
    assert!(is_done(pin!(inbox.take(&mut taken))));
    assert_eq!(taken, [second.clone()]);
}

#[test]
fn one_frame_may_always_be_in_it() {
    let inbox = inbox();
    let large = frame(LIMIT * 10);
    assert!(is_done(pin!(inbox.add(&large))));
    assert!(!is_done(pin!(inbox.add(&frame(1)))));
}

#[test]
fn nobody_waits_for_a_thread_that_is_done() {
    let inbox = inbox();
    let full = frame(LIMIT);
    assert!(is_done(pin!(inbox.add(&full))));
    let mut waiting = pin!(inbox.add(&full));
    assert!(!is_done(waiting.as_mut()));
    inbox.close();
    assert!(is_done(waiting));
    assert!(is_done(pin!(inbox.add(&full))));
}

#[test]
fn who_takes_from_an_empty_one_waits() {
    let inbox = inbox();
    let mut taken = Vec::new();
    let mut taking = pin!(inbox.take(&mut taken));
    assert!(!is_done(taking.as_mut()));
    assert!(is_done(pin!(inbox.add(&frame(1)))));
    assert!(is_done(taking));
}
