//! Whether a backend is asked that has not answered: after many failures it is left alone for a
//! while, so that logins do not wait for it, nor it for them.

/// Opens when requests fail, one after the other.
#[derive(Debug)]
pub(super) struct Circuit {
    /// 0: it never opens.
    failures_max: u32,
    pause_ns: u64,
    /// One after the other.
    failures: u32,
    state: CircuitState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CircuitState {
    /// All requests are made.
    Closed,
    /// None is made until then.
    Open { until_ns: u64 },
    /// One is under way; the others are not made until it is known how it goes.
    Probing,
}

impl Circuit {
    pub(super) const fn new(failures_max: u32, pause_s: u32) -> Self {
        let pause_ns = pause_s as u64 * 1_000_000_000;
        Self { failures_max, pause_ns, failures: 0, state: CircuitState::Closed }
    }

    /// Whether a request is made now. How it goes has to be told.
    pub(super) fn admits(&mut self, now_ns: u64) -> bool {
        match self.state {
            CircuitState::Closed => true,
            CircuitState::Open { until_ns } if now_ns >= until_ns => {
                self.state = CircuitState::Probing;
                true
            }
            CircuitState::Open { .. } | CircuitState::Probing => false,
        }
    }

    /// A request was answered.
    pub(super) fn answered(&mut self) {
        (self.failures, self.state) = (0, CircuitState::Closed);
    }

    /// A request got no answer.
    pub(super) fn failed(&mut self, now_ns: u64) {
        self.failures = self.failures.saturating_add(1);
        let opens = match self.state {
            CircuitState::Closed => self.failures_max > 0 && self.failures >= self.failures_max,
            CircuitState::Probing => true,
            // It was under way when others failed.
            CircuitState::Open { .. } => false,
        };
        if opens {
            self.state = CircuitState::Open { until_ns: now_ns.saturating_add(self.pause_ns) };
        }
    }

    /// Whether requests are left out.
    pub(super) fn is_open(&self) -> bool {
        self.state != CircuitState::Closed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn failing(circuit: &mut Circuit, times: u32, now_ns: u64) {
        for _ in 0..times {
            circuit.failed(now_ns);
        }
    }

    #[test]
    fn failures_in_a_row_open_it_and_one_request_probes() {
        let mut circuit = Circuit::new(3, 10);
        failing(&mut circuit, 2, 0);
        circuit.answered();
        failing(&mut circuit, 2, 0);
        assert!(circuit.admits(0) && !circuit.is_open());
        circuit.failed(SECOND_NS);
        assert!(circuit.is_open() && !circuit.admits(SECOND_NS));
        // One that was under way ends later; the pause does not begin anew.
        circuit.failed(5 * SECOND_NS);
        assert!(!circuit.admits(11 * SECOND_NS - 1));
        assert!(circuit.admits(11 * SECOND_NS));
        assert!(!circuit.admits(11 * SECOND_NS), "one is enough");
        circuit.failed(12 * SECOND_NS);
        assert!(!circuit.admits(22 * SECOND_NS - 1));
        assert!(circuit.admits(22 * SECOND_NS));
        circuit.answered();
        assert!(circuit.admits(22 * SECOND_NS) && !circuit.is_open());
        failing(&mut circuit, 2, 0);
        assert!(circuit.admits(23 * SECOND_NS), "failures count anew");
    }

    #[test]
    fn without_a_limit_it_never_opens() {
        let mut circuit = Circuit::new(0, 10);
        failing(&mut circuit, 1_000, 0);
        assert!(circuit.admits(0) && !circuit.is_open());
    }
}
