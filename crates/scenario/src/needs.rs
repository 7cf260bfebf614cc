//! Resources that a scenario needs on the machine that generates its load.

use crate::limits::{Limits, Shortage};

/// Messages per second, sent and received, that one core of the generator is expected to sustain
/// at QoS 1 and 2: bench/runs/2026-11-21-generator carried it without loss. Another machine has
/// another figure, so what follows from it is an estimate.
pub const MESSAGES_PER_CORE: u64 = 150_000;

/// The same at QoS 0, which has no acknowledgements.
pub const MESSAGES_PER_CORE_QOS0: u64 = 300_000;

/// Memory of a client that does nothing, at either end of its connection.
const BYTES_PER_CLIENT: u64 = 4096;

/// The needs and the offered load of a scenario.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Needs {
    /// Clients, each with a connection of its own.
    pub clients: u64,
    /// Open files of the generator's process. Exact.
    pub descriptors: u64,
    /// Addresses that the clients connect from; 0 where the system chooses.
    pub source_addresses: u64,
    /// Subscriptions.
    pub subscriptions: u64,
    /// Pairs of a stream and a receiver of all its messages.
    pub routes: u64,
    /// Messages to the brokers per second.
    pub in_per_s: f64,
    /// Messages from the brokers per second.
    pub out_per_s: f64,
    /// Some publishers send as fast as the broker lets them: the rates are not known.
    pub closed: bool,
    /// Cores of the generator. An estimate, see [`MESSAGES_PER_CORE`].
    pub generator_cores: f64,
    /// The brokers must be bridged to each other.
    pub bridged: bool,
    /// Connections opened in the busiest second; what is opened at once counts as one second's.
    pub connects_per_s: f64,
    /// The largest message.
    pub payload_bytes_max: u64,
    /// Payload that one stream of messages takes per second, at most.
    pub connection_bytes_per_s: f64,
    /// The longest keep-alive, in seconds.
    pub keep_alive_s_max: u16,
}

impl Needs {
    /// What `limits` lack for this. With the broker on the same machine the generator has half of
    /// its cores, and memory is needed at both ends.
    ///
    /// Descriptors are exact. Ports are exact for a broker elsewhere and for given source
    /// addresses; otherwise loopback has more addresses when one has too few. Memory is the least
    /// that clients take. Cores are an estimate.
    pub fn shortage(&self, limits: &Limits, one_machine: bool) -> Option<Shortage> {
        let (needed, available) = (self.descriptors, limits.descriptors_max);
        if needed > available {
            return Some(Shortage::Descriptors { needed, available });
        }
        let needed = self.clients.div_ceil(self.source_addresses.max(1));
        let available = limits.ports_per_address;
        if needed > available && (!one_machine || self.source_addresses > 0) {
            return Some(Shortage::Ports { needed, available });
        }
        let ends = if one_machine { 2 } else { 1 };
        let (needed, available) = (self.clients * BYTES_PER_CLIENT * ends, limits.memory_bytes);
        if needed > available {
            return Some(Shortage::Memory { needed, available });
        }
        let available = (limits.cores / ends).max(1);
        if self.generator_cores > available as f64 {
            let messages_per_s = self.in_per_s + self.out_per_s;
            return Some(Shortage::Cores {
                needed: self.generator_cores.ceil() as u64,
                available,
                messages_per_s,
                per_core: (messages_per_s / self.generator_cores).round() as u64,
            });
        }
        None
    }
}
