//! Explicit arrivals of the plan.

use std::sync::Arc;

use super::Place;
use crate::plan::{Arrivals, Scale, Trace};

#[derive(Debug, Clone)]
pub(super) struct Traced {
    trace: Arc<Trace>,
    start_ns: u64,
    /// Message `i` of the stream is number `i * stride + first` of the trace.
    stride: u64,
    first: f64,
    factor: f64,
    /// Messages in one pass of a trace of rates that is repeated.
    pass: f64,
}

impl Traced {
    pub(super) fn new(start_ns: u64, trace: &Arc<Trace>, scale: Scale, place: Place) -> Self {
        let stride = u64::from(trace.shared_by).max(1);
        let first = match trace.arrivals {
            _ if stride > 1 => (place.ordinal % stride) as f64,
            Arrivals::Offsets(_) => 0.0,
            Arrivals::Rates(_) => place.ordinal as f64 / place.siblings.max(1) as f64,
        };
        Self {
            trace: Arc::clone(trace),
            start_ns,
            stride,
            first,
            factor: scale.factor(),
            pass: trace.repeat_ns.map_or(0.0, |repeat_ns| trace.messages_until(repeat_ns)),
        }
    }

    pub(super) fn due_ns(&self, index: u64) -> u64 {
        let offset = match &self.trace.arrivals {
            Arrivals::Offsets(offsets) => self.recorded(offsets, index),
            Arrivals::Rates(_) => self.drawn(index),
        };
        offset.map_or(u64::MAX, |offset| self.start_ns.saturating_add(offset))
    }

    fn recorded(&self, offsets: &[u64], index: u64) -> Option<u64> {
        let number = index * self.stride + self.first as u64;
        let len = offsets.len() as u64;
        let (pass, at) = (number / len, number % len);
        let pass_ns = match (pass, self.trace.repeat_ns) {
            (0, _) => 0,
            (_, Some(repeat_ns)) => pass.saturating_mul(repeat_ns),
            (_, None) => return None,
        };
        let offset = pass_ns.saturating_add(offsets[at as usize]);
        Some(if self.factor == 1.0 { offset } else { (offset as f64 / self.factor) as u64 })
    }

    fn drawn(&self, index: u64) -> Option<u64> {
        let Arrivals::Rates(rates) = &self.trace.arrivals else { return None };
        let mut wanted = ((index * self.stride) as f64 + self.first) / self.factor;
        let mut pass_ns = 0;
        if let Some(repeat_ns) = self.trace.repeat_ns {
            let pass = (wanted / self.pass).floor();
            wanted = (wanted - pass * self.pass).clamp(0.0, self.pass);
            pass_ns = (pass as u64).saturating_mul(repeat_ns);
        }
        let ends = rates.iter().skip(1).map(|next| next.from_ns);
        let ends = ends.chain([self.trace.repeat_ns.unwrap_or(u64::MAX)]);
        for (rate, end_ns) in rates.iter().zip(ends) {
            let length_ns = end_ns - rate.from_ns;
            let messages = rate.per_second * length_ns as f64 / 1e9;
            if rate.per_second > 0.0 && wanted < messages {
                let within_ns = (wanted * 1e9 / rate.per_second) as u64;
                return Some(pass_ns.saturating_add(rate.from_ns + within_ns.min(length_ns)));
            }
            wanted = (wanted - messages).max(0.0);
        }
        // Rounding may place the last message of a pass after its end.
        self.trace.repeat_ns.map(|repeat_ns| pass_ns.saturating_add(repeat_ns))
    }

    /// Number of the first message due at or after `end_ns`, from `next` on.
    pub(super) fn due_before(&self, next: u64, end_ns: u64) -> u64 {
        let mut step = 1;
        while self.due_ns(next + step) < end_ns {
            step *= 2;
        }
        // The message at `low` is due before the end, the one at `high` is not.
        let (mut low, mut high) = (next + step / 2, next + step);
        if step == 1 {
            low = next;
        }
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.due_ns(middle) < end_ns {
                low = middle;
            } else {
                high = middle;
            }
        }
        high
    }
}
