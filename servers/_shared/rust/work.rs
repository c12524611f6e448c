use crate::effects::Effects;

/// How a stream goes on after what was read.
#[derive(PartialEq)]
pub(crate) enum Flow {
    Open,
    Close,
    Error,
}

/// What bytes mean in one workload.
pub(crate) trait Work: Send {
    /// Takes the next bytes of the stream, in any slicing.
    fn receive(&mut self, bytes: &[u8], effects: &mut Effects) -> Flow;
    /// The peer ended its stream: what is still pending.
    fn end(&mut self, effects: &mut Effects) -> Flow;
}
