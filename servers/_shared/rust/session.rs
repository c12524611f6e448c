use std::sync::Arc;

use crate::effects::Effects;
use crate::options::{Options, Workload};
use crate::totals::Totals;
use crate::work::{Flow, Work};
use crate::{http, workloads};

/// The work of one connection without any I/O, by protocol/WIRE.md: bytes in, effects out; what lib/session/session.hpp
/// is to the C++ servers.
pub struct Session {
    work: Box<dyn Work>,
    totals: Arc<Totals>,
    closed: bool,
}

impl Session {
    pub fn new(options: &Options, totals: &Arc<Totals>) -> Session {
        let counts = Arc::clone(totals);
        let work: Box<dyn Work> = match options.workload {
            Workload::Echo => Box::new(workloads::Echo::new(counts)),
            Workload::Lines => Box::new(workloads::Lines::new(options, counts)),
            Workload::Rpc => Box::new(workloads::Rpc::new(options, counts)),
            Workload::Chat => Box::new(workloads::Chat::new(options, counts)),
            Workload::Http | Workload::Web => Box::new(http::Http::new(options, counts)),
        };
        Session { work, totals: Arc::clone(totals), closed: false }
    }

    /// Takes the next bytes of the stream, in any slicing, and appends what is to be done. After a `Close` further bytes
    /// are ignored.
    pub fn receive(&mut self, bytes: &[u8], effects: &mut Effects) {
        self.totals.add_bytes_in(bytes.len());
        if !self.closed {
            let flow = self.work.receive(bytes, effects);
            self.go_on(flow, effects);
        }
    }

    /// The peer ended its stream: appends what is still pending, and `Close`.
    pub fn end(&mut self, effects: &mut Effects) {
        if !self.closed {
            let flow = self.work.end(effects);
            self.go_on(flow, effects);
        }
    }

    fn go_on(&mut self, flow: Flow, effects: &mut Effects) {
        if flow == Flow::Error {
            self.totals.add_protocol_error();
        }
        if flow != Flow::Open {
            self.closed = true;
            effects.close();
        }
    }
}
