use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

const SHARDS: usize = 64;

/// What a server did. Any thread may add. Each thread has a shard of its own, so that counting is not what a comparison
/// of thread counts measures.
pub struct Totals {
    shards: Vec<Shard>,
}

#[derive(Default)]
#[repr(align(64))]
struct Shard {
    requests: AtomicU64,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
    connections: AtomicU64,
    protocol_errors: AtomicU64,
    slow_closed: AtomicU64,
}

impl Default for Totals {
    fn default() -> Totals {
        Totals::new()
    }
}

impl Totals {
    pub fn new() -> Totals {
        Totals { shards: (0..SHARDS).map(|_| Shard::default()).collect() }
    }

    pub(crate) fn add_request(&self) {
        self.mine().requests.fetch_add(1, Relaxed);
    }
    pub(crate) fn add_bytes_in(&self, bytes: usize) {
        self.mine().bytes_in.fetch_add(bytes as u64, Relaxed);
    }
    pub fn add_bytes_out(&self, bytes: usize) {
        self.mine().bytes_out.fetch_add(bytes as u64, Relaxed);
    }
    pub fn add_connection(&self) {
        self.mine().connections.fetch_add(1, Relaxed);
    }
    pub(crate) fn add_protocol_error(&self) {
        self.mine().protocol_errors.fetch_add(1, Relaxed);
    }
    /// A reader that let more than the outbox limit pile up.
    pub fn add_slow_closed(&self) {
        self.mine().slow_closed.fetch_add(1, Relaxed);
    }

    pub fn requests(&self) -> u64 {
        self.sum(|shard| &shard.requests)
    }
    pub fn protocol_errors(&self) -> u64 {
        self.sum(|shard| &shard.protocol_errors)
    }

    /// The one line that ends a server's life. Exact once the counting threads are done; a lower bound before.
    pub fn json(&self) -> String {
        format!(
            r#"{{"requests":{},"bytes_in":{},"bytes_out":{},"connections":{},"protocol_errors":{},"slow_closed":{}}}"#,
            self.requests(),
            self.sum(|shard| &shard.bytes_in),
            self.sum(|shard| &shard.bytes_out),
            self.sum(|shard| &shard.connections),
            self.protocol_errors(),
            self.sum(|shard| &shard.slow_closed)
        )
    }

    fn sum(&self, count: impl Fn(&Shard) -> &AtomicU64) -> u64 {
        self.shards.iter().map(|shard| count(shard).load(Relaxed)).sum()
    }

    fn mine(&self) -> &Shard {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        thread_local!(static MINE: usize = NEXT.fetch_add(1, Relaxed) % SHARDS);
        &self.shards[MINE.with(|mine| *mine)]
    }
}
