//! The options that every server takes, as the launcher hands them over: protocol/WIRE.md, "Options".
use std::process::exit;
use std::time::Duration;

use serde_json::Value;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Workload {
    Echo,
    Lines,
    Rpc,
    Chat,
    Http,
    Web,
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
    pub single: bool, // a write for each chat message to each recipient
    pub service_time: Duration,
    pub burns: bool, // the service time is spent burning CPU
    pub max_frame: usize,
    pub outbox_limit: usize,
}

impl Options {
    /// Ends the program with exit 2 where it was not started by the launcher.
    pub fn from_launcher() -> Options {
        let arguments: Vec<String> = std::env::args_os().map(|text| text.to_string_lossy().into_owned()).collect();
        match arguments.as_slice() {
            [_, resolved] if resolved.starts_with('{') => Options::read(resolved),
            _ => {
                let program = arguments.first().map_or("", |path| path.rsplit('/').next().unwrap_or(path));
                eprintln!("{program}: wants its resolved options as one JSON argument: ./netdyno serve {program}");
                exit(2);
            }
        }
    }

    /// Reads one JSON object. Panics where a key is missing.
    pub fn read(resolved: &str) -> Options {
        let json: Value = serde_json::from_str(resolved).expect("a JSON object");
        let text = |key: &str| json[key].as_str().expect(key);
        let number = |key: &str| json[key].as_u64().expect(key);
        Options {
            host: text("host").to_string(),
            port: number("port") as u16,
            workload: match text("workload") {
                "echo" => Workload::Echo,
                "lines" => Workload::Lines,
                "rpc" => Workload::Rpc,
                "chat" => Workload::Chat,
                "web" => Workload::Web,
                _ => Workload::Http,
            },
            threads: number("threads") as usize,
            backlog: number("backlog") as i32,
            nodelay: json["nodelay"].as_bool().expect("nodelay"),
            read_buffer: number("read_buffer") as usize,
            split: text("write_mode") == "split",
            to_all: text("audience") == "all",
            single: text("deliveries") == "single",
            service_time: Duration::from_nanos(number("service_time_ns")),
            burns: text("service_kind") == "cpu",
            max_frame: number("max_frame") as usize,
            outbox_limit: number("outbox_limit") as usize,
        }
    }
}
