//! Every vector of protocol/golden.json against the sessions, with the input sliced in many ways.
use std::sync::Arc;

use netdyno_server::effects::{Effect, Effects, HEADER};
use netdyno_server::options::Options;
use netdyno_server::session::Session;
use netdyno_server::totals::Totals;
use serde_json::Value;

/// An effect with its bytes; adjacent writes are joined where a server may do so.
#[derive(Clone, Debug, PartialEq)]
enum Done {
    Write(Vec<u8>),
    Broadcast(Vec<Vec<u8>>),
    Wait(u64),
    Burn(u64),
    Close,
}

struct Vector {
    name: String,
    options: Options,
    chunks: Vec<Vec<u8>>,
    ends: bool,
    effects: Vec<Done>,
    requests: Option<u64>,
    protocol_errors: u64,
}

impl Vector {
    fn read(json: &Value) -> Vector {
        let workload = text(&json["workload"]);
        let effects = items(&json["effects"]).iter().map(done).collect();
        Vector {
            name: text(&json["name"]).to_string(),
            effects: if workload == "echo" { joined(effects) } else { effects },
            options: Options::read(text(&json["resolved"])),
            chunks: items(&json["chunks"]).iter().map(|chunk| bytes(text(chunk))).collect(),
            ends: json["ends"] == true,
            requests: json["requests"].as_u64(),
            protocol_errors: json["protocol_errors"].as_u64().expect("a count"),
        }
    }

    fn may_join(&self) -> bool {
        !self.options.split || self.options.workload == netdyno_server::options::Workload::Echo
    }

    fn expect(&self, slices: &[&[u8]], how: &str) {
        let totals = Arc::new(Totals::new());
        let mut session = Session::new(&self.options, &totals);
        let mut effects = Effects::new(self.options.split);
        let mut all = Vec::new();
        for slice in slices {
            let mut buffer = slice.to_vec();
            effects.clear();
            session.receive(&buffer, &mut effects);
            buffer.fill(b'?'); // as the next read does
            all.extend(effects.list().iter().map(|effect| carried_out(effect, &effects, self.options.split)));
        }
        if self.ends {
            effects.clear();
            session.end(&mut effects);
            all.extend(effects.list().iter().map(|effect| carried_out(effect, &effects, self.options.split)));
        }
        let all = if self.may_join() { joined(all) } else { all };
        assert_eq!(all, self.effects, "{}, {how}", self.name);
        assert_eq!(totals.protocol_errors(), self.protocol_errors, "{}, {how}", self.name);
        assert!(self.requests.map_or(true, |wanted| totals.requests() == wanted), "requests of {}, {how}", self.name);
    }
}

fn text(json: &Value) -> &str {
    json.as_str().expect("a string")
}

fn items(json: &Value) -> &[Value] {
    json.as_array().expect("an array")
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal");
    (0..hex.len()).step_by(2).map(digits).collect()
}

fn done(json: &Value) -> Done {
    let (kind, value) = json.as_object().and_then(|effect| effect.iter().next()).expect("an effect");
    match kind.as_str() {
        "write" => Done::Write(bytes(text(value))),
        "broadcast" => Done::Broadcast(items(value).iter().map(|part| bytes(text(part))).collect()),
        "wait" => Done::Wait(value.as_u64().expect("nanoseconds")),
        "burn" => Done::Burn(value.as_u64().expect("nanoseconds")),
        "close" => Done::Close,
        other => panic!("an effect that is not known: {other}"),
    }
}

/// Without the lines Date of http replies: these differ with each second.
fn undated(mut bytes: Vec<u8>) -> Vec<u8> {
    const MARK: &[u8] = b"\r\nDate: ";
    while let Some(at) = bytes.windows(MARK.len()).position(|window| window == MARK) {
        bytes.drain(at..at + MARK.len() + "Sun, 06 Nov 1994 08:49:37 GMT".len());
    }
    bytes
}

fn carried_out(effect: &Effect, effects: &Effects, split: bool) -> Done {
    match effect {
        Effect::Write(range) => Done::Write(undated(effects.bytes(range).to_vec())),
        Effect::Broadcast(frame) if split => Done::Broadcast(vec![frame[..HEADER].to_vec(), frame[HEADER..].to_vec()]),
        Effect::Broadcast(frame) => Done::Broadcast(vec![frame.to_vec()]),
        Effect::Wait(duration) => Done::Wait(duration.as_nanos() as u64),
        Effect::Burn(duration) => Done::Burn(duration.as_nanos() as u64),
        Effect::Close => Done::Close,
    }
}

fn joined(effects: Vec<Done>) -> Vec<Done> {
    let mut all: Vec<Done> = Vec::new();
    for effect in effects {
        match (all.last_mut(), effect) {
            (Some(Done::Write(last)), Done::Write(bytes)) => last.extend(bytes),
            (_, effect) => all.push(effect),
        }
    }
    all
}

/// Pseudo-random numbers below 2^31, the same in every run (Park and Miller's minimal standard generator).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0 * 48271 % 2147483647;
        self.0 as usize % limit
    }
}

#[test]
fn every_golden_vector_however_it_is_sliced() {
    // At run time: a tree that has moved keeps what was compiled in its old place.
    let path = std::env::var("CARGO_MANIFEST_DIR").expect("cargo names the folder") + "/../../../protocol/golden.json";
    let golden = std::fs::read_to_string(path).expect("protocol/golden.json can be read");
    let golden: Value = serde_json::from_str(&golden).expect("protocol/golden.json is JSON");
    let vectors: Vec<Vector> = items(&golden["vectors"]).iter().map(Vector::read).collect();
    assert!(vectors.len() > 50);
    let mut random = Random(20250101);
    for vector in vectors {
        let chunks: Vec<&[u8]> = vector.chunks.iter().map(Vec::as_slice).collect();
        let stream = chunks.concat();
        vector.expect(&chunks, "as given");
        vector.expect(&[&stream], "in one piece");
        vector.expect(&stream.chunks(1).collect::<Vec<_>>(), "byte by byte");
        let step = 1 + stream.len() / 512; // every place, except in the few long streams
        for at in (1..stream.len()).filter(|at| *at < 32 || at + 32 > stream.len() || at % step == 0) {
            let (before, after) = stream.split_at(at);
            vector.expect(&[before, after], &format!("cut at {at}"));
        }
        for round in 0..20 {
            let longest = 1 + random.below(60);
            let mut slices = Vec::new();
            let mut rest = &stream[..];
            while !rest.is_empty() {
                let (slice, after) = rest.split_at((1 + random.below(longest)).min(rest.len()));
                slices.push(slice);
                rest = after;
            }
            vector.expect(&slices, &format!("random pieces {round}"));
        }
    }
}
