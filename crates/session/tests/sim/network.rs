//! One connection as two byte streams with delays, splits and cuts.

use std::collections::VecDeque;

use tacho_testkit::rng::Rng;

/// One direction of a connection.
#[derive(Default)]
pub(crate) struct Stream {
    transit: VecDeque<u8>,
    arrived: Vec<u8>,
}

impl Stream {
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.transit.extend(bytes);
    }

    /// Delivers some of the bytes in transit, split anywhere. False if there are none.
    pub(crate) fn deliver(&mut self, rng: &mut Rng) -> bool {
        let waiting = self.transit.len() as u64;
        if waiting == 0 {
            return false;
        }
        let len = if rng.percent(50) { waiting } else { rng.between(1, waiting) };
        self.arrived.extend(self.transit.drain(..len as usize));
        true
    }

    pub(crate) fn arrived(&self) -> &[u8] {
        &self.arrived
    }

    pub(crate) fn consume(&mut self, len: usize) {
        self.arrived.drain(..len);
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.transit.is_empty() && self.arrived.is_empty()
    }

    pub(crate) fn cut(&mut self) {
        *self = Self::default();
    }
}

/// A connection; `up` is towards the server.
#[derive(Default)]
pub(crate) struct Link {
    pub(crate) up: Stream,
    pub(crate) down: Stream,
    pub(crate) broken: bool,
}

impl Link {
    /// All bytes in transit and all bytes written from now on are lost.
    pub(crate) fn cut(&mut self) {
        self.up.cut();
        self.down.cut();
        self.broken = true;
    }
}
