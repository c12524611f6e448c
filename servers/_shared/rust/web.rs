//! The workload web: what a framework can do in twenty lines (protocol/WIRE.md, Web).
use std::time::Duration;

pub(crate) const ITEMS: &[u8] = br#"[{"id":1,"name":"one"},{"id":2,"name":"two"},{"id":3,"name":"three"}]"#;
const MOST_OF_A_QUERY: usize = 10_000_000; // microseconds, or bytes

/// The query of a request; nothing that is missing is requested.
#[derive(Default)]
pub(crate) struct Query {
    pub wait: Duration,
    pub cpu: Duration,
    pub size: usize,
}

impl Query {
    /// `None` where a value is no number of its unit.
    pub fn parse(query: &[u8]) -> Option<Query> {
        let mut parsed = Query::default();
        for part in query.split(|byte| *byte == b'&').filter(|part| !part.is_empty()) {
            let equals = part.iter().position(|byte| *byte == b'=')?;
            let (name, value) = (&part[..equals], &part[equals + 1..]);
            let unit: &[u8] = if name == b"size" { b"" } else { b"us" };
            let number = parse_number(value, unit).filter(|number| *number <= MOST_OF_A_QUERY)?;
            match name {
                b"wait" => parsed.wait = Duration::from_micros(number as u64),
                b"cpu" => parsed.cpu = Duration::from_micros(number as u64),
                b"size" => parsed.size = number,
                _ => {}
            }
        }
        Some(parsed)
    }
}

/// The whole number before `unit`; `None` where it is none.
pub(crate) fn parse_number(text: &[u8], unit: &[u8]) -> Option<usize> {
    let digits = text.strip_suffix(unit)?;
    let all_digits = digits.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(digits).ok().filter(|_| all_digits)?.parse().ok()
}
