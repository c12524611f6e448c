//! WorkMessage of protocol/work.proto by hand, from https://protobuf.dev/programming-guides/encoding/ alone.

const VARINT: u32 = 0;
const I64: u32 = 1;
const LEN: u32 = 2;
const START_GROUP: u32 = 3;
const END_GROUP: u32 = 4;
const I32: u32 = 5;
const MAX_DEPTH: u32 = 100; // as Google's parsers have it: nested groups must not exhaust the stack
const LONGEST_NUMBER: usize = 10; // bytes
const LONGEST_LENGTH: usize = 5; // and tag

pub struct Request<'a> {
    pub job_id: u32,
    pub workload: i32,
    pub stamp: &'a [u8],
}

/// Bytes that are no Protobuf.
struct Malformed;

enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    Skipped,
}

/// Reads fields one after the other.
struct Fields<'a> {
    rest: &'a [u8],
    depth: u32,
}

impl<'a> Fields<'a> {
    /// The next field's number and value. Groups are skipped.
    fn next(&mut self) -> Result<Option<(u32, Value<'a>)>, Malformed> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let (number, kind) = self.tag()?;
        Ok(Some((number, self.value(number, kind, self.depth)?)))
    }

    fn tag(&mut self) -> Result<(u32, u32), Malformed> {
        let tag = u32::try_from(self.varint(LONGEST_LENGTH)?).map_err(|_| Malformed)?;
        if tag >> 3 == 0 {
            return Err(Malformed);
        }
        Ok((tag >> 3, tag & 7))
    }

    fn value(&mut self, number: u32, kind: u32, depth: u32) -> Result<Value<'a>, Malformed> {
        match kind {
            VARINT => self.varint(LONGEST_NUMBER).map(Value::Number),
            I64 => self.take(8).map(|_| Value::Skipped),
            I32 => self.take(4).map(|_| Value::Skipped),
            LEN => {
                let size = self.varint(LONGEST_LENGTH)?;
                self.take(usize::try_from(size).map_err(|_| Malformed)?).map(Value::Bytes)
            }
            START_GROUP => self.skip_group(number, depth).map(|()| Value::Skipped),
            _ => Err(Malformed), // a wire type that there is not, or the end of a group that never began
        }
    }

    fn skip_group(&mut self, group: u32, depth: u32) -> Result<(), Malformed> {
        if depth >= MAX_DEPTH {
            return Err(Malformed);
        }
        loop {
            let (number, kind) = self.tag()?;
            if kind == END_GROUP {
                return if number == group { Ok(()) } else { Err(Malformed) };
            }
            self.value(number, kind, depth + 1)?;
        }
    }

    fn take(&mut self, size: usize) -> Result<&'a [u8], Malformed> {
        if size > self.rest.len() {
            return Err(Malformed);
        }
        let (taken, rest) = self.rest.split_at(size);
        self.rest = rest;
        Ok(taken)
    }

    fn varint(&mut self, longest: usize) -> Result<u64, Malformed> {
        let mut value = 0;
        for (at, byte) in self.rest.iter().take(longest).enumerate() {
            value |= u64::from(byte & 0x7f) << (7 * at);
            if byte & 0x80 == 0 {
                self.rest = &self.rest[at + 1..];
                return Ok(value);
            }
        }
        Err(Malformed) // cut off, or too long
    }
}

/// The WorkRequest of a WorkMessage, or nothing where the bytes do not parse or hold no request. A repeated message is
/// merged, and the last member of the oneof counts.
pub fn parse_request(body: &[u8]) -> Option<Request<'_>> {
    parse_message(body).unwrap_or(None)
}

fn parse_message(body: &[u8]) -> Result<Option<Request<'_>>, Malformed> {
    let mut request = None;
    let mut fields = Fields { rest: body, depth: 0 };
    while let Some((number, value)) = fields.next()? {
        match (number, value) {
            (1, Value::Bytes(inner)) => {
                read_request(inner, request.get_or_insert(Request { job_id: 0, workload: 0, stamp: &[] }))?;
            }
            (2, Value::Bytes(inner)) => {
                let mut response = Fields { rest: inner, depth: 1 };
                while response.next()?.is_some() {} // it must parse too
                request = None;
            }
            _ => {}
        }
    }
    Ok(request)
}

/// Merges the fields of a WorkRequest into `request`. A number keeps its lower 32 bits.
fn read_request<'a>(bytes: &'a [u8], request: &mut Request<'a>) -> Result<(), Malformed> {
    let mut fields = Fields { rest: bytes, depth: 1 };
    while let Some((number, value)) = fields.next()? {
        match (number, value) {
            (1, Value::Number(value)) => request.job_id = value as u32,
            (2, Value::Number(value)) => request.workload = value as u32 as i32,
            (3, Value::Bytes(value)) => request.stamp = value,
            _ => {}
        }
    }
    Ok(())
}

/// Appends WorkMessage{WorkResponse{job_id, is_complete: true, stamp}}.
pub fn encode_response(request: &Request, out: &mut Vec<u8>) {
    let Request { job_id, stamp, .. } = request;
    let stamp_size = stamp.len() as u32;
    let of_job = if *job_id == 0 { 0 } else { 1 + varint_size(*job_id) };
    let of_stamp = if stamp.is_empty() { 0 } else { 1 + varint_size(stamp_size) + stamp_size };
    put_number(out, 2, LEN, of_job + 2 + of_stamp);
    if *job_id != 0 {
        put_number(out, 1, VARINT, *job_id);
    }
    put_number(out, 2, VARINT, 1);
    if !stamp.is_empty() {
        put_number(out, 3, LEN, stamp_size);
        out.extend_from_slice(stamp);
    }
}

fn varint_size(value: u32) -> u32 {
    (38 - (value | 1).leading_zeros()) / 7
}

/// A tag and the number after it.
fn put_number(out: &mut Vec<u8>, field: u8, kind: u32, mut value: u32) {
    out.push(field << 3 | kind as u8);
    while value > 0x7f {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
