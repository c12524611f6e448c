//! The options that every server takes (the program contract): values mean what they mean in lib/server/options.cpp.
use std::process::exit;
use std::time::Duration;

/// How many threads a model can have; a value that the model cannot have is refused, never ignored.
#[derive(Clone, Copy, PartialEq)]
pub enum Threads {
    Any,
    One,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Workload {
    Echo,
    Lines,
    Rpc,
    Chat,
    Http,
}

pub struct Options {
    pub host: String, // without brackets
    pub port: u16,
    pub workload: Workload,
    pub threads: usize,
    pub backlog: i32,
    pub nodelay: bool,
    pub read_buffer: usize,
    pub split: bool,  // header and body in two writes
    pub to_all: bool, // a chat message reaches its sender too
    pub service_time: Duration,
    pub burns: bool, // the service time is spent burning CPU
    pub max_frame: usize,
    pub outbox_limit: usize,
}

const GIB: u64 = 1 << 30;

/// Name, values, default, help.
const KNOWN: [(&str, &str, &str, &str); 12] = [
    ("--listen", "URL", "tcp://127.0.0.1:0", "where to listen; port 0 picks a free one"),
    ("--workload", "echo|lines|rpc|chat|http", "echo", "application protocol"),
    ("--threads", "INT in [1 - 1024]", "1", "threads that serve"),
    ("--backlog", "INT in [1 - 65535]", "4096", "listen(2) backlog"),
    ("--nodelay", "on|off", "on", "TCP_NODELAY"),
    ("--read-buffer", "BYTES", "16KiB", "bytes asked for in one read"),
    ("--write-mode", "gathered|split", "gathered", "header and body in one write or two"),
    ("--audience", "others|all", "others", "who gets a chat message"),
    ("--service-time", "DUR", "0", "service time of a request of rpc or http"),
    ("--service-kind", "wait|cpu", "wait", "spend the service time waiting or burning CPU"),
    ("--max-frame", "BYTES", "1MiB", "longest message accepted"),
    ("--outbox-limit", "BYTES", "4MiB", "bytes that may wait for one reader before it is closed"),
];

impl Options {
    /// Ends the program on `--help` (exit 0) and on an unknown option or a bad value (exit 2, one clear line on stderr).
    pub fn from_command_line(threads: Threads) -> Options {
        let arguments: Vec<String> = std::env::args_os().map(|text| text.to_string_lossy().into_owned()).collect();
        let program = arguments.first().map_or("", |path| path.rsplit('/').next().unwrap_or(path));
        let given = arguments.get(1..).unwrap_or_default();
        if given.iter().any(|text| text == "--help" || text == "-h") {
            print!("{}", help(program));
            exit(0);
        }
        Options::parse(given, program, threads).unwrap_or_else(|why| {
            // Whatever is in an argument, the message about it stays one line and does nothing to a terminal.
            let printable: String = why.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
            eprintln!("{program}: {printable} (--help lists the options)");
            exit(2);
        })
    }

    /// Or why not.
    pub fn parse(arguments: &[String], program: &str, threads: Threads) -> Result<Options, String> {
        let mut options = Options::none();
        for (name, _, value, _) in KNOWN {
            options.set(name, value)?;
        }
        let mut given: Vec<&str> = Vec::new();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let (name, value) = match argument.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (argument.as_str(), None),
            };
            if !KNOWN.iter().any(|known| known.0 == name) {
                return Err(format!("unknown argument: {name}"));
            }
            if given.contains(&name) {
                return Err(format!("{name}: given twice"));
            }
            given.push(name);
            let value = value.or_else(|| rest.next().map(String::as_str));
            let value = value.ok_or_else(|| format!("{name}: a value is missing"))?;
            options.set(name, value).map_err(|why| format!("{name}: {why}"))?;
        }
        if threads == Threads::One && options.threads != 1 {
            return Err(format!("--threads: {program} runs on exactly one thread"));
        }
        Ok(options)
    }

    fn none() -> Options {
        Options {
            host: String::new(),
            port: 0,
            workload: Workload::Echo,
            threads: 0,
            backlog: 0,
            nodelay: false,
            read_buffer: 0,
            split: false,
            to_all: false,
            service_time: Duration::ZERO,
            burns: false,
            max_frame: 0,
            outbox_limit: 0,
        }
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "--listen" => (self.host, self.port) = parse_url(value)?,
            "--workload" => self.workload = choice(value, &WORKLOADS)?,
            "--threads" => self.threads = whole(value, 1, 1024)? as usize,
            "--backlog" => self.backlog = whole(value, 1, 65535)? as i32,
            "--nodelay" => self.nodelay = choice(value, &[("on", true), ("off", false)])?,
            "--read-buffer" => self.read_buffer = parse_bytes(value, GIB)?,
            "--write-mode" => self.split = choice(value, &[("gathered", false), ("split", true)])?,
            "--audience" => self.to_all = choice(value, &[("others", false), ("all", true)])?,
            "--service-time" => self.service_time = parse_duration(value)?,
            "--service-kind" => self.burns = choice(value, &[("wait", false), ("cpu", true)])?,
            "--max-frame" => self.max_frame = parse_bytes(value, GIB)?,
            "--outbox-limit" => self.outbox_limit = parse_bytes(value, 1 << 40)?,
            _ => unreachable!("{name} is in KNOWN"),
        }
        Ok(())
    }
}

const WORKLOADS: [(&str, Workload); 5] = [
    ("echo", Workload::Echo),
    ("lines", Workload::Lines),
    ("rpc", Workload::Rpc),
    ("chat", Workload::Chat),
    ("http", Workload::Http),
];

fn help(program: &str) -> String {
    let mut text = format!("{program}: netdyno contestant: see protocol/WIRE.md for what it speaks\n");
    for (name, values, default, what) in KNOWN {
        text += &format!("  {:<38} {what} [{default}]\n", format!("{name} {values}"));
    }
    text
}

fn choice<T: Copy>(text: &str, choices: &[(&str, T)]) -> Result<T, String> {
    let found = choices.iter().find(|(name, _)| *name == text);
    let names = || choices.iter().map(|(name, _)| *name).collect::<Vec<_>>().join("|");
    found.map(|(_, value)| *value).ok_or_else(|| format!("'{text}' is none of {}", names()))
}

fn whole(text: &str, low: i64, high: i64) -> Result<i64, String> {
    let value: i64 = text.parse().map_err(|_| format!("'{text}' is no whole number"))?;
    if (low..=high).contains(&value) {
        Ok(value)
    } else {
        Err(format!("{text} is not in [{low} - {high}]"))
    }
}

/// The digits at the front of a text, and the rest.
fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// "16384", "16KiB", "1MiB", "1GiB" (powers of 1024; "16k" and "16KB" are refused as ambiguous), from 1 to `most`.
fn parse_bytes(text: &str, most: u64) -> Result<usize, String> {
    let (number, unit) = digits(text);
    let unit = match unit {
        "" | "B" => Some(1),
        "KiB" => Some(1 << 10),
        "MiB" => Some(1 << 20),
        "GiB" => Some(GIB),
        _ => None,
    };
    let (Some(unit), false) = (unit, number.is_empty()) else {
        return Err(format!("'{text}' is no size; want e.g. 512, 16KiB, 1MiB"));
    };
    match number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit)) {
        Some(value) if (1..=most).contains(&value) => Ok(value as usize),
        _ => Err(format!("'{text}' is out of range")),
    }
}

/// "250us", "5ms", "1.5s", "2m", "0". A bare number other than 0 has no unit and is refused.
fn parse_duration(text: &str) -> Result<Duration, String> {
    let refused = || format!("'{text}' is no duration; want e.g. 250us, 5ms, 1s");
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let number: f64 = number.parse().map_err(|_| refused())?;
    let unit_ns = match unit {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "m" => 60e9,
        "" if number == 0.0 => 0.0,
        _ => return Err(refused()),
    };
    let nanoseconds = number * unit_ns;
    if nanoseconds > 9e18 {
        return Err(refused());
    }
    Ok(Duration::from_nanos(nanoseconds.round() as u64))
}

/// tcp://host:port; an IPv6 host stands in brackets (RFC 3986, 3.2.2; with a zone, RFC 4007).
fn parse_url(text: &str) -> Result<(String, u16), String> {
    let refused = || format!("'{text}' is no URL; want e.g. tcp://127.0.0.1:7000");
    let (transport, rest) = text.split_once("://").ok_or_else(refused)?;
    let place = rest.split('?').next().unwrap_or(rest);
    let (host, port) = place.rsplit_once(':').ok_or_else(refused)?;
    let (number, after) = digits(port);
    let port = number.parse().map_err(|_| refused())?;
    let made_of = |text: &str, others: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || others.contains(c))
    };
    let host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(address) if address.contains(':') && made_of(address, ":.%_-") => address,
        None if made_of(host, "._-") => host,
        _ => return Err(refused()),
    };
    if transport.is_empty() || !after.is_empty() {
        return Err(refused());
    }
    if transport != "tcp" {
        return Err(format!("transport '{transport}' is not spoken here"));
    }
    Ok((host.to_string(), port))
}
