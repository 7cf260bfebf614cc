//! The settings of a loop.

use std::net::TcpListener;

/// Settings of one [`Loop`](crate::Loop).
///
/// All bounds are per turn: the excess is handled in the next turn, which then does not sleep.
/// [`turn_ns_max`](Self::turn_ns_max) bounds all work together, the others are upper bounds beside
/// it.
#[derive(Debug)]
pub struct LoopConfig {
    /// Listening sockets; [`Handler::accepted`](crate::Handler::accepted) receives the index in
    /// this list. Several loops may listen on clones of one socket.
    pub listeners: Vec<TcpListener>,
    /// How long a turn may take; 0 for any time. What is left then is done in the next turn: mail,
    /// timers, reads, closes and writes wait in their order.
    pub turn_ns_max: u64,
    /// Bytes that one read of one connection takes at most. Twice this much is allocated per loop.
    pub read_buffer_bytes: usize,
    /// Events taken from the kernel in one call.
    pub events_per_turn_max: usize,
    /// Connections read in one turn.
    pub connections_per_turn_max: usize,
    /// Connections accepted per listener in one turn.
    pub accepts_per_turn_max: usize,
    /// Time per turn for accepting and for newcomers: connections that the handler has not called
    /// [established](crate::Net::established). They are served after all others. 0 treats both
    /// alike.
    pub newcomers_budget_ns: u64,
    /// Mails delivered in one turn.
    pub mails_per_turn_max: usize,
    /// Timers fired in one turn.
    pub timers_per_turn_max: usize,
    /// The high-water mark: unwritten output of a connection, measured when it is flushed.
    pub output_high_bytes: usize,
    /// The low-water mark: [`Handler::drained`](crate::Handler::drained) is called when the
    /// unwritten output of a connection that was above the high one has fallen to this or less.
    pub output_low_bytes: usize,
    /// [`Net::congested`](crate::Net::congested) is true for a shard with more undelivered mails.
    pub mailbox_high_len: usize,
    /// The longest time that a closed connection is kept so that its last output arrives: it is
    /// dropped earlier once everything is written and the peer has closed too.
    pub linger_ns: u64,
    /// Closed connections kept at a time; the oldest one is dropped for one more.
    pub lingering_max: usize,
    /// Write to many connections with one system call, where [`probe_batch_writes`] says that the
    /// system can. It makes long fan-outs cheaper.
    ///
    /// [`probe_batch_writes`]: crate::probe_batch_writes
    pub batch_writes: bool,
    /// Poll without ever sleeping: precise, and occupies a whole core.
    pub spin: bool,
    /// The CPU that [`Loop::run`](crate::Loop::run) pins its thread to. Ignored where the system
    /// has no such call.
    pub cpu: Option<usize>,
}

impl Default for LoopConfig {
    fn default() -> Self {
        Self {
            listeners: Vec::new(),
            turn_ns_max: 0,
            read_buffer_bytes: 64 * 1024,
            events_per_turn_max: 1024,
            connections_per_turn_max: 1024,
            accepts_per_turn_max: 64,
            newcomers_budget_ns: 0,
            mails_per_turn_max: 4096,
            timers_per_turn_max: 4096,
            output_high_bytes: 1024 * 1024,
            output_low_bytes: 256 * 1024,
            mailbox_high_len: 64 * 1024,
            linger_ns: 1_000_000_000,
            lingering_max: 4096,
            batch_writes: false,
            spin: false,
            cpu: None,
        }
    }
}
