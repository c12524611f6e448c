use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of a frame's length.
pub const HEADER: usize = 4;

/// What a frame that waits for a reader counts beside its bytes, in every server (protocol/WIRE.md): a frame of one byte
/// takes far more than that to keep.
pub const FRAME_OVERHEAD: usize = 128;

/// A complete frame, header included, that any number of recipients share.
pub type Frame = Arc<[u8]>;

/// One thing that a session asks of its server.
pub enum Effect {
    /// Send these bytes of [`Effects::bytes`] to this connection, in a write of its own.
    Write(Range<usize>),
    /// Send the frame to the audience.
    Broadcast(Frame),
    /// Let so much time pass before the next effect, without holding up other connections.
    Wait(Duration),
    /// Keep this core busy for so long ([`crate::lifecycle::burn_cpu`]).
    Burn(Duration),
    /// Close this connection once the writes before it are sent.
    Close,
}

/// What a session wants done, in order: carry out one effect after the other, finish all of them before the next
/// `Session::receive` of the same connection, then `clear`.
pub struct Effects {
    split: bool,
    list: Vec<Effect>,
    storage: Vec<u8>,
}

impl Effects {
    pub fn new(split: bool) -> Effects {
        Effects { split, list: Vec::new(), storage: Vec::new() }
    }

    pub fn list(&self) -> &[Effect] {
        &self.list
    }

    pub fn bytes(&self, write: &Range<usize>) -> &[u8] {
        &self.storage[write.clone()]
    }

    pub fn clear(&mut self) {
        self.list.clear();
        self.storage.clear();
    }

    /// A reply of two parts (the first may be empty). Gathered: joins the write before it. Split: a write per part.
    pub(crate) fn reply(&mut self, header: &[u8], body: &[u8]) {
        self.write(header);
        self.write(body);
    }

    pub(crate) fn broadcast(&mut self, frame: Frame) {
        self.list.push(Effect::Broadcast(frame));
    }

    /// Nothing is added for a duration of 0.
    pub(crate) fn serve(&mut self, burns: bool, duration: Duration) {
        if !duration.is_zero() {
            self.list.push(if burns { Effect::Burn(duration) } else { Effect::Wait(duration) });
        }
    }

    pub(crate) fn close(&mut self) {
        self.list.push(Effect::Close);
    }

    fn write(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let start = self.storage.len();
        self.storage.extend_from_slice(bytes);
        match self.list.last_mut() {
            Some(Effect::Write(last)) if !self.split => last.end = self.storage.len(),
            _ => self.list.push(Effect::Write(start..self.storage.len())),
        }
    }
}
