//! HTTP/1.1 GET with keep-alive and pipelining (RFC 9112), with an optional service time; the reply's body is the request
//! target.
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use crate::effects::Effects;
use crate::options::Options;
use crate::search::{find, find_byte};
use crate::session::{Flow, Work};
use crate::totals::Totals;

const MAX_HEAD: usize = 16 << 10;
const END_OF_HEAD: &[u8] = b"\r\n\r\n";

/// What of a request's head matters here, or the status to refuse it with.
struct Request<'a> {
    target: &'a [u8],
    keep_alive: bool,
}

/// The text before `mark` and after it.
fn cut<'a>(text: &'a [u8], mark: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    find(text, mark).map(|at| (&text[..at], &text[at + mark.len()..]))
}

/// Without the blanks and tabs around it, and nothing else.
fn trim(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = text {
        text = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = text {
        text = rest;
    }
    text
}

fn is_token(text: &[u8]) -> bool {
    let mark = |byte: &u8| b"!#$%&'*+-.^_`|~".contains(byte);
    !text.is_empty() && text.iter().all(|byte| byte.is_ascii_alphanumeric() || mark(byte))
}

fn is_target(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(u8::is_ascii_graphic)
}

/// A head without the empty line that ends it.
fn parse_head(head: &[u8]) -> Result<Request<'_>, u16> {
    let (line, mut rest) = cut(head, b"\r\n").unwrap_or((head, &[]));
    let (method, line) = cut(line, b" ").ok_or(400u16)?;
    let (target, version) = cut(line, b" ").ok_or(400u16)?;
    let is_1_0 = version == b"HTTP/1.0";
    if !is_token(method) || !is_target(target) || !(is_1_0 || version == b"HTTP/1.1") {
        return Err(400);
    }
    let mut request = Request { target, keep_alive: !is_1_0 };
    let mut has_body = false;
    while !rest.is_empty() {
        let line;
        (line, rest) = cut(rest, b"\r\n").unwrap_or((rest, &[]));
        let colon = find_byte(line, b':').ok_or(400u16)?;
        let (name, value) = (&line[..colon], trim(&line[colon + 1..]));
        if !is_token(name) {
            return Err(400);
        }
        if name.eq_ignore_ascii_case(b"connection") && lists_close(value) {
            request.keep_alive = false;
        }
        has_body |= name.eq_ignore_ascii_case(b"transfer-encoding");
        has_body |= name.eq_ignore_ascii_case(b"content-length") && value != b"0";
    }
    match (method == b"GET", has_body) {
        (false, _) => Err(405),
        (true, true) => Err(413),
        (true, false) => Ok(request),
    }
}

/// A comma-separated list (RFC 9110, 5.6.1) holds "close".
fn lists_close(list: &[u8]) -> bool {
    list.split(|byte| *byte == b',').any(|item| trim(item).eq_ignore_ascii_case(b"close"))
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        405 => "Method Not Allowed",
        413 => "Content Too Large",
        431 => "Request Header Fields Too Large",
        _ => "Bad Request",
    }
}

pub struct Http {
    pending: Vec<u8>,
    server: Server,
}

struct Server {
    totals: Arc<Totals>,
    max_head: usize,
    service_time: Duration,
    burns: bool,
    head: Vec<u8>, // reused
}

impl Http {
    pub fn new(options: &Options, totals: Arc<Totals>) -> Http {
        let Options { max_frame, service_time, burns, .. } = *options;
        let server = Server { totals, max_head: MAX_HEAD.min(max_frame), service_time, burns, head: Vec::new() };
        Http { pending: Vec::new(), server }
    }
}

impl Work for Http {
    fn receive(&mut self, bytes: &[u8], effects: &mut Effects) -> Flow {
        if self.pending.is_empty() {
            let (flow, consumed) = self.server.consume(bytes, effects);
            self.pending.extend_from_slice(&bytes[consumed..]);
            return flow;
        }
        self.pending.extend_from_slice(bytes);
        let (flow, consumed) = self.server.consume(&self.pending, effects);
        self.pending.drain(..consumed);
        flow
    }

    fn end(&mut self, _: &mut Effects) -> Flow {
        if self.pending.is_empty() {
            Flow::Close
        } else {
            Flow::Error
        }
    }
}

impl Server {
    /// Serves the complete requests at the front of `bytes`: how the stream goes on, and how many bytes they were.
    fn consume(&mut self, bytes: &[u8], effects: &mut Effects) -> (Flow, usize) {
        let mut at = 0;
        let mut flow = Flow::Open;
        while flow == Flow::Open {
            let rest = &bytes[at..];
            let end = find(rest, END_OF_HEAD);
            flow = match end {
                Some(end) if end <= self.max_head => self.serve(&rest[..end], effects),
                // The last bytes of an incomplete head may be the beginning of its end, which does not count.
                None if rest.len() < self.max_head + END_OF_HEAD.len() => return (Flow::Open, at),
                _ => self.refuse(431, effects),
            };
            at += end.map_or(0, |end| end + END_OF_HEAD.len());
        }
        (flow, at)
    }

    fn serve(&mut self, head: &[u8], effects: &mut Effects) -> Flow {
        match parse_head(head) {
            Err(status) => self.refuse(status, effects),
            Ok(Request { target, keep_alive }) => {
                self.totals.add_request();
                effects.serve(self.burns, self.service_time);
                self.respond(200, target, keep_alive, effects);
                if keep_alive {
                    Flow::Open
                } else {
                    Flow::Close
                }
            }
        }
    }

    fn refuse(&mut self, status: u16, effects: &mut Effects) -> Flow {
        self.respond(status, reason(status).as_bytes(), false, effects);
        Flow::Error
    }

    fn respond(&mut self, status: u16, body: &[u8], keep_alive: bool, effects: &mut Effects) {
        let close = if keep_alive { "" } else { "Connection: close\r\n" };
        self.head.clear();
        write!(
            self.head,
            "HTTP/1.1 {status} {}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n{close}\r\n",
            reason(status),
            body.len()
        )
        .expect("memory takes all");
        effects.reply(&self.head, body);
    }
}
