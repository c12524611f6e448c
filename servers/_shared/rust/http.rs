//! HTTP/1.1 GET and HEAD with keep-alive and pipelining (RFC 9112), with an optional service time; the reply's body is
//! the request target. Of the workload web (web.rs) also POST.
use std::io::Write;
use std::mem::take;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::effects::Effects;
use crate::options::{Options, Workload};
use crate::search::{find, find_byte};
use crate::totals::Totals;
use crate::web::{parse_number, Query, ITEMS};
use crate::work::{Flow, Work};

const MAX_HEAD: usize = 16 << 10;
const END_OF_HEAD: &[u8] = b"\r\n\r\n";

const TEXT: &str = "text/plain";
const JSON: &str = "application/json";

const OK: &str = "200 OK";
const BAD_REQUEST: &str = "400 Bad Request";
const NOT_IMPLEMENTED: &str = "501 Not Implemented";

/// What of a request's head matters here.
struct Request<'a> {
    target: &'a [u8],
    wants_body: bool, // not of HEAD
    posts: bool,
    body_size: usize,
    connection: Connection,
}

/// Of a reply's header Connection: `None` where the connection stays, as it does by default.
#[derive(Clone, Copy, PartialEq)]
enum Connection {
    None,
    Close,
    KeepAlive,
}

impl Connection {
    fn line(self) -> &'static str {
        match self {
            Connection::None => "",
            Connection::Close => "Connection: close\r\n",
            Connection::KeepAlive => "Connection: keep-alive\r\n",
        }
    }
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

fn is_value(text: &[u8]) -> bool {
    !text.iter().any(|byte| matches!(byte, 0 | b'\r' | b'\n'))
}

/// A head without the empty line that ends it, or the status to refuse it with.
fn parse_head(head: &[u8], takes_posts: bool) -> Result<Request<'_>, &'static str> {
    let (line, mut rest) = cut(head, b"\r\n").unwrap_or((head, &[]));
    let (method, line) = cut(line, b" ").ok_or(BAD_REQUEST)?;
    let (target, version) = cut(line, b" ").ok_or(BAD_REQUEST)?;
    let is_1_0 = version == b"HTTP/1.0";
    if !is_token(method) || !is_target(target) || !(is_1_0 || version == b"HTTP/1.1") {
        return Err(BAD_REQUEST);
    }
    let posts = takes_posts && method == b"POST";
    let (mut hosts, mut says_close, mut says_keep_alive) = (0, false, false);
    let (mut has_body, mut body_size) = (false, 0);
    while !rest.is_empty() {
        let line;
        (line, rest) = cut(rest, b"\r\n").unwrap_or((rest, &[]));
        let colon = find_byte(line, b':').ok_or(BAD_REQUEST)?;
        let (name, value) = (&line[..colon], trim(&line[colon + 1..]));
        if !is_token(name) || !is_value(value) {
            return Err(BAD_REQUEST);
        }
        if name.eq_ignore_ascii_case(b"host") {
            hosts += 1;
        }
        if name.eq_ignore_ascii_case(b"connection") {
            says_close |= lists(value, b"close");
            says_keep_alive |= lists(value, b"keep-alive");
        }
        has_body |= name.eq_ignore_ascii_case(b"transfer-encoding");
        if name.eq_ignore_ascii_case(b"content-length") {
            if posts {
                body_size = parse_number(value, b"").ok_or(BAD_REQUEST)?;
            } else {
                has_body |= value != b"0";
            }
        }
    }
    if hosts > 1 || (hosts == 0 && !is_1_0) {
        return Err(BAD_REQUEST);
    }
    if method != b"GET" && method != b"HEAD" && !posts {
        return Err(NOT_IMPLEMENTED); // RFC 9110, 9.1: also with a body
    }
    if has_body {
        return Err(BAD_REQUEST);
    }
    let connection = match (says_close, is_1_0, says_keep_alive) {
        (true, _, _) | (false, true, false) => Connection::Close,
        (false, true, true) => Connection::KeepAlive,
        (false, false, _) => Connection::None,
    };
    Ok(Request { target, wants_body: method != b"HEAD", posts, body_size, connection })
}

/// A comma-separated list (RFC 9110, 5.6.1) holds the token.
fn lists(list: &[u8], token: &[u8]) -> bool {
    list.split(|byte| *byte == b',').any(|item| trim(item).eq_ignore_ascii_case(token))
}

pub struct Http {
    pending: Vec<u8>,
    server: Server,
}

struct Server {
    totals: Arc<Totals>,
    answers_web: bool,
    max_head: usize,
    max_body: usize,
    service_time: Duration,
    burns: bool,
    head: Vec<u8>, // reused
    body: Vec<u8>, // the same
    date: String,  // of the second that stands before it
    second: u64,
}

impl Http {
    pub fn new(options: &Options, totals: Arc<Totals>) -> Http {
        let Options { max_frame, service_time, burns, .. } = *options;
        let server = Server {
            totals,
            answers_web: options.workload == Workload::Web,
            max_head: MAX_HEAD.min(max_frame),
            max_body: max_frame,
            service_time,
            burns,
            head: Vec::new(),
            body: Vec::new(),
            date: String::new(),
            second: 0,
        };
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
            while bytes[at..].starts_with(b"\r\n") {
                at += 2; // RFC 9112, 2.2
            }
            let rest = &bytes[at..];
            let end = match find(rest, END_OF_HEAD) {
                Some(end) if end <= self.max_head => end,
                // The last bytes of an incomplete head may be the beginning of its end, which does not count.
                None if rest.len() < self.max_head + END_OF_HEAD.len() => return (Flow::Open, at),
                _ => return (self.refuse(BAD_REQUEST, effects), at),
            };
            flow = match parse_head(&rest[..end], self.answers_web) {
                Err(status) => self.refuse(status, effects),
                Ok(request) if request.body_size > self.max_body => self.refuse(BAD_REQUEST, effects),
                Ok(request) => {
                    let whole = end + END_OF_HEAD.len() + request.body_size;
                    if rest.len() < whole {
                        return (Flow::Open, at);
                    }
                    at += whole;
                    self.serve(&request, effects)
                }
            };
        }
        (flow, at)
    }

    fn serve(&mut self, request: &Request, effects: &mut Effects) -> Flow {
        if !self.answers_web {
            effects.serve(self.burns, self.service_time);
            self.respond(request, TEXT, request.target, effects);
        } else if !self.answer_web(request, effects) {
            return self.refuse(BAD_REQUEST, effects);
        }
        self.totals.add_request();
        if request.connection == Connection::Close {
            Flow::Close
        } else {
            Flow::Open
        }
    }

    /// False where the request is to be refused.
    fn answer_web(&mut self, request: &Request, effects: &mut Effects) -> bool {
        let (path, query) = cut(request.target, b"?").unwrap_or((request.target, &[]));
        let mut body = take(&mut self.body);
        body.clear();
        let answered = if path == b"/items" {
            if request.posts {
                write!(body, "{}", request.body_size).expect("memory takes all");
            } else {
                body.extend_from_slice(ITEMS);
            }
            self.respond(request, JSON, &body, effects);
            true
        } else {
            match (path, Query::parse(query)) {
                ([b'/', stamp @ ..], Some(query)) if !request.posts && query.size <= self.max_body => {
                    effects.serve(false, query.wait);
                    effects.serve(true, query.cpu);
                    body.extend_from_slice(stamp);
                    body.resize(body.len().max(query.size), b'x');
                    self.respond(request, TEXT, &body, effects);
                    true
                }
                _ => false,
            }
        };
        self.body = body;
        answered
    }

    fn refuse(&mut self, status: &str, effects: &mut Effects) -> Flow {
        self.write_reply(status, TEXT, &[], false, Connection::Close, effects);
        Flow::Error
    }

    fn respond(&mut self, to: &Request, content_type: &str, body: &[u8], effects: &mut Effects) {
        self.write_reply(OK, content_type, body, to.wants_body, to.connection, effects);
    }

    fn write_reply(
        &mut self,
        status: &str,
        content_type: &str,
        body: &[u8],
        with_body: bool,
        connection: Connection,
        effects: &mut Effects,
    ) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        if now != self.second || self.date.is_empty() {
            (self.second, self.date) = (now, httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(now)));
        }
        self.head.clear();
        write!(
            self.head,
            "HTTP/1.1 {status}\r\nDate: {}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n{}\r\n",
            self.date,
            body.len(),
            connection.line()
        )
        .expect("memory takes all");
        effects.reply(&self.head, if with_body { body } else { &[] });
    }
}
