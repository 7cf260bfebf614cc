//! Bridges: connections of the broker's own to other brokers, as all shards and the control plane
//! share them. What they do is in `shard::bridge`.

mod status;

pub use status::{Figures, MemberStats, MemberStatus, State, Status};

/// All bridges of a broker, in the order of the configuration.
#[derive(Debug, Default)]
pub struct Bridges {
    all: Box<[Bridge]>,
}

/// One bridge.
#[derive(Debug)]
pub struct Bridge {
    name: String,
    /// As in the configuration.
    remote: String,
    members: Box<[MemberStats]>,
}

impl Bridges {
    /// How each of them stands.
    pub fn status(&self) -> Vec<Status> {
        self.all.iter().map(Bridge::status).collect()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

impl Bridge {
    /// How it stands.
    pub fn status(&self) -> Status {
        Status::of(&self.name, &self.remote, &self.members)
    }
}
