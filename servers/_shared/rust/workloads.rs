use std::sync::Arc;
use std::time::Duration;

use crate::effects::{Effects, Frame, HEADER};
use crate::options::Options;
use crate::protobuf;
use crate::search::find_byte;
use crate::totals::Totals;
use crate::work::{Flow, Work};

const MAX_WORKLOAD_US: u64 = 10_000_000;

/// Bytes as they come. What one read brought counts as one request: an echo server sees no messages.
pub struct Echo {
    totals: Arc<Totals>,
}

impl Echo {
    pub fn new(totals: Arc<Totals>) -> Echo {
        Echo { totals }
    }
}

impl Work for Echo {
    fn receive(&mut self, bytes: &[u8], effects: &mut Effects) -> Flow {
        self.totals.add_request();
        effects.reply(&[], bytes);
        Flow::Open
    }

    fn end(&mut self, _: &mut Effects) -> Flow {
        Flow::Close
    }
}

/// Source D's `process`: what was read is split by line before it is echoed.
pub struct Lines {
    totals: Arc<Totals>,
    max_line: usize,
    pending: Vec<u8>,
}

impl Lines {
    pub fn new(options: &Options, totals: Arc<Totals>) -> Lines {
        Lines { totals, max_line: options.max_frame, pending: Vec::new() }
    }

    fn echo_line(&mut self, tail: &[u8], effects: &mut Effects) {
        self.totals.add_request();
        if self.pending.is_empty() {
            return effects.reply(&[], tail);
        }
        self.pending.extend_from_slice(tail);
        effects.reply(&[], &self.pending);
        self.pending.clear();
    }
}

impl Work for Lines {
    fn receive(&mut self, mut bytes: &[u8], effects: &mut Effects) -> Flow {
        while !bytes.is_empty() {
            let newline = find_byte(bytes, b'\n');
            let (piece, rest) = bytes.split_at(newline.map_or(bytes.len(), |at| at + 1));
            bytes = rest;
            if self.pending.len() + piece.len() > self.max_line {
                return Flow::Error;
            }
            if newline.is_some() {
                self.echo_line(piece, effects);
            } else {
                self.pending.extend_from_slice(piece);
            }
        }
        Flow::Open
    }

    fn end(&mut self, effects: &mut Effects) -> Flow {
        if !self.pending.is_empty() {
            self.echo_line(&[], effects);
        }
        Flow::Close
    }
}

/// Cuts a byte stream into frames, whatever the slicing. Bytes are copied only while a frame is incomplete.
struct Frames {
    max_frame: usize,
    pending: Vec<u8>,
}

impl Frames {
    fn new(options: &Options) -> Frames {
        Frames { max_frame: options.max_frame, pending: Vec::new() }
    }

    /// Calls `take` with each complete frame, its header included, until one does not leave the stream open.
    fn receive(&mut self, bytes: &[u8], take: impl FnMut(&[u8]) -> Flow) -> Flow {
        if self.pending.is_empty() {
            let (flow, consumed) = consume(self.max_frame, bytes, take);
            self.pending.extend_from_slice(&bytes[consumed..]);
            return flow;
        }
        self.pending.extend_from_slice(bytes);
        let (flow, consumed) = consume(self.max_frame, &self.pending, take);
        self.pending.drain(..consumed);
        flow
    }

    /// A stream must not end inside a message.
    fn end(&self) -> Flow {
        if self.pending.is_empty() {
            Flow::Close
        } else {
            Flow::Error
        }
    }
}

/// Takes complete frames off the front of `bytes`: how the stream goes on, and how many bytes they were.
fn consume(max_frame: usize, bytes: &[u8], mut take: impl FnMut(&[u8]) -> Flow) -> (Flow, usize) {
    let mut at = 0;
    while let Some(header) = bytes.get(at..at + HEADER) {
        let size = u32::from_be_bytes(header.try_into().expect("4 bytes")) as usize;
        if size == 0 || size > max_frame {
            return (Flow::Error, at);
        }
        let Some(frame) = bytes.get(at..at + HEADER + size) else { break };
        at += frame.len();
        let flow = take(frame);
        if flow != Flow::Open {
            return (flow, at);
        }
    }
    (Flow::Open, at)
}

/// Source A's request and response: Protobuf, parsed and serialised, with an optional service time.
pub struct Rpc {
    frames: Frames,
    server: RpcServer,
}

struct RpcServer {
    totals: Arc<Totals>,
    service_time: Duration,
    burns: bool,
    reply: Vec<u8>, // reused
}

impl Rpc {
    pub fn new(options: &Options, totals: Arc<Totals>) -> Rpc {
        let Options { service_time, burns, .. } = *options;
        Rpc { frames: Frames::new(options), server: RpcServer { totals, service_time, burns, reply: Vec::new() } }
    }
}

impl RpcServer {
    fn serve(&mut self, body: &[u8], effects: &mut Effects) -> Flow {
        let Some(request) = protobuf::parse_request(body) else { return Flow::Error };
        let asked_us = match u64::try_from(request.workload) {
            Ok(us) if us <= MAX_WORKLOAD_US => us,
            _ => return Flow::Error,
        };
        self.totals.add_request();
        effects.serve(self.burns, self.service_time + Duration::from_micros(asked_us));
        self.reply.clear();
        protobuf::encode_response(&request, &mut self.reply);
        effects.reply(&(self.reply.len() as u32).to_be_bytes(), &self.reply);
        Flow::Open
    }
}

impl Work for Rpc {
    fn receive(&mut self, bytes: &[u8], effects: &mut Effects) -> Flow {
        let Rpc { frames, server } = self;
        frames.receive(bytes, |frame| server.serve(&frame[HEADER..], effects))
    }

    fn end(&mut self, _: &mut Effects) -> Flow {
        self.frames.end()
    }
}

/// Each message becomes one immutable frame that all recipients share.
pub struct Chat {
    totals: Arc<Totals>,
    frames: Frames,
}

impl Chat {
    pub fn new(options: &Options, totals: Arc<Totals>) -> Chat {
        Chat { totals, frames: Frames::new(options) }
    }
}

impl Work for Chat {
    fn receive(&mut self, bytes: &[u8], effects: &mut Effects) -> Flow {
        let totals = &self.totals;
        self.frames.receive(bytes, |frame| {
            totals.add_request();
            effects.broadcast(Frame::from(frame));
            Flow::Open
        })
    }

    fn end(&mut self, _: &mut Effects) -> Flow {
        self.frames.end()
    }
}
