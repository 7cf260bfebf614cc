//! Resources that a scenario needs on the machine that generates its load.

use crate::limits::{DESCRIPTORS_RESERVED, Limits, Shortage};

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
    /// Payload to the brokers per second, in bytes.
    pub in_bytes_per_s: f64,
    /// Payload from the brokers per second, in bytes.
    pub out_bytes_per_s: f64,
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
    /// What `clients` need on their own, whatever they send.
    pub fn of_clients(clients: u64, source_addresses: u64) -> Self {
        let descriptors = clients + DESCRIPTORS_RESERVED;
        Self { clients, descriptors, source_addresses, ..Self::default() }
    }

    /// All that `limits` lack for this, cores of the generator last. The generator has
    /// `generator_cores`; with the broker on the same machine, memory is needed at both ends.
    ///
    /// Descriptors are exact. Ports are exact for a broker elsewhere and for given source
    /// addresses; otherwise loopback has more addresses when one has too few. Memory is the least
    /// that clients take. Cores are an estimate.
    pub fn shortages(
        &self,
        limits: &Limits,
        one_machine: bool,
        generator_cores: u64,
    ) -> Vec<Shortage> {
        let mut shortages = Vec::new();
        let (needed, available) = (self.descriptors, limits.descriptors_max);
        if needed > available {
            shortages.push(Shortage::Descriptors { needed, available });
        }
        let needed = self.clients.div_ceil(self.source_addresses.max(1));
        let available = limits.ports_per_address;
        if needed > available && (!one_machine || self.source_addresses > 0) {
            shortages.push(Shortage::Ports { needed, available });
        }
        let ends = if one_machine { 2 } else { 1 };
        let (needed, available) = (self.clients * BYTES_PER_CLIENT * ends, limits.memory_bytes);
        if needed > available {
            shortages.push(Shortage::Memory { needed, available });
        }
        if self.generator_cores > generator_cores as f64 {
            let (in_per_s, out_per_s) = (self.in_per_s, self.out_per_s);
            shortages.push(Shortage::Cores {
                needed: self.generator_cores.ceil() as u64,
                available: generator_cores,
                in_per_s,
                out_per_s,
                per_core: ((in_per_s + out_per_s) / self.generator_cores).round() as u64,
            });
        }
        shortages
    }
}
