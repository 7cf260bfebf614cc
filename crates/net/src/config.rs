//! What a loop is told when it is created.

use std::net::TcpListener;

/// Settings of one [`Loop`](crate::Loop).
///
/// All bounds are per turn: what exceeds them is continued in the next turn, which then does not
/// sleep.
#[derive(Debug)]
pub struct LoopConfig {
    /// Listening sockets; [`Handler::accepted`](crate::Handler::accepted) is told the index in this
    /// list. Several loops may listen on clones of one socket.
    pub listeners: Vec<TcpListener>,
    /// Bytes that one read of one connection takes at most. Twice this much is allocated per loop.
    pub read_buffer_bytes: usize,
    /// Events taken from the kernel in one call.
    pub events_per_turn_max: usize,
    /// Connections read in one turn.
    pub connections_per_turn_max: usize,
    /// Connections accepted per listener in one turn.
    pub accepts_per_turn_max: usize,
    /// Time per turn for accepting and for connections that the handler has not called
    /// [established](crate::Net::established): they are served behind all others. 0 makes no
    /// difference between the two kinds.
    pub newcomers_budget_ns: u64,
    /// Mails delivered in one turn.
    pub mails_per_turn_max: usize,
    /// Timers fired in one turn.
    pub timers_per_turn_max: usize,
    /// A connection with more unwritten output than this when it is flushed is above the high-water
    /// mark.
    pub output_high_bytes: usize,
    /// [`Handler::drained`](crate::Handler::drained) is called when the unwritten output of such a
    /// connection has fallen to this or less.
    pub output_low_bytes: usize,
    /// [`Net::congested`](crate::Net::congested) is true for a shard with more undelivered mails.
    pub mailbox_high_len: usize,
    /// How long a closed connection is kept so that its last output arrives: until everything is
    /// written and the peer has closed too, at most this long.
    pub linger_ns: u64,
    /// Closed connections kept so at a time; the oldest one is dropped for one more.
    pub lingering_max: usize,
    /// Poll without ever sleeping: precise, and takes a whole core.
    pub spin: bool,
    /// The CPU that [`Loop::run`](crate::Loop::run) pins its thread to. Ignored where the system
    /// has no such call.
    pub cpu: Option<usize>,
}

impl Default for LoopConfig {
    fn default() -> Self {
        Self {
            listeners: Vec::new(),
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
            spin: false,
            cpu: None,
        }
    }
}
