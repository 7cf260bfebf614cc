//! The pace of a stream: when its messages are due.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// When the messages of a stream are due.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Pace {
    /// Open loop: an absolute schedule of even steps, independent of the broker.
    Open {
        /// Rate of each stream.
        rate: Rate,
        /// Offset of a stream's first message in its period.
        phase: PhasePolicy,
        /// Treatment of messages that are behind schedule.
        catch_up: CatchUp,
    },
    /// Random arrivals, each stream by itself, from the plan's seed: gaps are exponential, and
    /// every [`Pace::POISSON_BLOCK`] periods hold exactly as many messages, so that the mean
    /// rate is exact. Open loop.
    Poisson {
        /// Mean rate of each stream.
        rate: Rate,
        /// Treatment of messages that are behind schedule.
        catch_up: CatchUp,
    },
    /// Several messages at once in each period. Open loop.
    Bursts {
        /// Messages in a burst, at least 1.
        messages: u32,
        /// From one burst to the next, at least 1 ns.
        period_ns: u64,
        /// Offset of a stream's bursts in the period.
        phase: PhasePolicy,
        /// Treatment of messages that are behind schedule.
        catch_up: CatchUp,
    },
    /// A recorded or precomputed sequence of arrivals. Open loop.
    Trace {
        /// The arrivals.
        #[serde(with = "crate::wire::shared")]
        trace: Arc<Trace>,
        /// Treatment of messages that are behind schedule.
        catch_up: CatchUp,
    },
    /// JMeter's constant throughput timer for "all active threads in current thread group": the gap
    /// between two messages of a stream is `round(active x 60000 / per_minute)` whole milliseconds
    /// (at least 1), computed for each message from the streams started by then. A stream's first
    /// message is due at once, and delays are not caught up.
    Jmeter {
        /// Messages per minute of the thread group as a whole.
        per_minute: f64,
        /// Streams per thread group. The streams of a block fill one group after another, as on
        /// several machines.
        threads: u32,
        /// The group's ramp-up: stream `k` starts `k x round(ramp / threads)` whole
        /// milliseconds after the load.
        ramp_ns: u64,
        /// Wait for the acknowledgement of each message of QoS 1 or 2 before the next one.
        wait: bool,
    },
    /// Closed loop, as fast as the broker allows: at most `window` messages per stream in flight,
    /// counted by verified deliveries at QoS 0 and by acknowledgements at QoS 1 and 2.
    Closed {
        /// Messages in flight per stream, at least 1.
        window: u32,
    },
}

impl Pace {
    /// Messages per block, after which a Poisson stream has exactly its mean rate.
    pub const POISSON_BLOCK: u64 = 256;

    /// Mean rate of one stream; `None` in closed mode.
    pub fn per_second(&self) -> Option<f64> {
        match self {
            Self::Open { rate, .. } | Self::Poisson { rate, .. } => Some(rate.per_second()),
            Self::Bursts { messages, period_ns, .. } => {
                Some(f64::from(*messages) * 1e9 / *period_ns as f64)
            }
            Self::Trace { trace, .. } => Some(trace.per_second()),
            Self::Jmeter { per_minute, threads, .. } => {
                Some(1e3 / jmeter_delay_ms(u64::from(*threads), *per_minute) as f64)
            }
            Self::Closed { .. } => None,
        }
    }

    /// Treatment of messages that are behind schedule.
    pub const fn catch_up(&self) -> CatchUp {
        match self {
            Self::Open { catch_up, .. }
            | Self::Poisson { catch_up, .. }
            | Self::Bursts { catch_up, .. }
            | Self::Trace { catch_up, .. } => *catch_up,
            Self::Jmeter { .. } | Self::Closed { .. } => CatchUp::CatchUp,
        }
    }
}

/// JMeter's delay between two samples of a thread, at least one millisecond, since a thread without
/// any delay would never end its turn.
pub(crate) fn jmeter_delay_ms(active: u64, per_minute: f64) -> u64 {
    ((active as f64 * 60_000.0 / per_minute).round() as u64).max(1)
}

/// An exact rate: `messages` per `per_ns` nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    /// Messages, at least 1.
    pub messages: u64,
    /// Nanoseconds, at least 1.
    pub per_ns: u64,
}

impl Rate {
    /// One message every `period_ns` nanoseconds.
    pub const fn every_ns(period_ns: u64) -> Self {
        Self { messages: 1, per_ns: period_ns }
    }

    /// `total` messages per second divided evenly over `streams` streams, exactly.
    pub const fn per_second_shared(total: u64, streams: u64) -> Self {
        Self { messages: total, per_ns: streams * 1_000_000_000 }
    }

    /// Messages per second.
    pub fn per_second(self) -> f64 {
        self.messages as f64 * 1e9 / self.per_ns as f64
    }
}

/// Offset of a stream's first message in its period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum PhasePolicy {
    /// Stream `i` of `n` of its block starts at `i * period / n`.
    #[default]
    Uniform,
    /// Seeded random in `[0, period)`.
    Random,
    /// All streams at once, which causes bursts.
    Aligned,
    /// Streams start one after another: stream `i` of its block at `i * step_ns`.
    Ramp {
        /// Time between the starts of consecutive streams.
        step_ns: u64,
    },
}

/// What an open stream does with messages that are behind schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum CatchUp {
    /// Send them all, late; latency counts from the intended time.
    #[default]
    CatchUp,
    /// Send the latest one, and count the others as dropped.
    Skip,
}

/// An explicit sequence of arrivals, relative to the start of the load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// The arrivals.
    pub arrivals: Arrivals,
    /// Period of repetition; `None` ends the stream with the trace (with [`Arrivals::Rates`], the
    /// last rate continues).
    pub repeat_ns: Option<u64>,
    /// Streams that share the trace, at least 1: the `k`-th stream of the block sends messages `k`,
    /// `k + shared_by`, and so on. With 1, each stream sends all messages.
    pub shared_by: u32,
}

/// The form of a trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Arrivals {
    /// The due time of each message, in ascending order.
    Offsets(Vec<u64>),
    /// Rates over time; the first begins at 0, times ascend.
    Rates(Vec<RateFrom>),
}

/// A rate from a given time on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RateFrom {
    /// Since the start of the trace.
    pub from_ns: u64,
    /// Messages per second until the next entry; may be 0.
    pub per_second: f64,
}

impl Trace {
    /// Mean rate of one stream over the length of the trace, or over a second where that is longer:
    /// a burst of messages has no rate of its own.
    pub fn per_second(&self) -> f64 {
        let all = match (&self.arrivals, self.repeat_ns) {
            (Arrivals::Offsets(offsets), Some(length_ns)) => {
                offsets.len() as f64 * 1e9 / length_ns as f64
            }
            (Arrivals::Offsets(offsets), None) => {
                let last_ns = offsets.last().copied().unwrap_or(0).max(1_000_000_000);
                offsets.len() as f64 * 1e9 / last_ns as f64
            }
            (Arrivals::Rates(_), Some(length_ns)) => {
                self.messages_until(length_ns) * 1e9 / length_ns as f64
            }
            (Arrivals::Rates(rates), None) => rates.last().map_or(0.0, |last| last.per_second),
        };
        all / f64::from(self.shared_by)
    }

    /// Messages before `until_ns` in one pass of a trace of rates, with a fractional part.
    pub(crate) fn messages_until(&self, until_ns: u64) -> f64 {
        let Arrivals::Rates(rates) = &self.arrivals else { return 0.0 };
        let ends = rates.iter().skip(1).map(|next| next.from_ns).chain([u64::MAX]);
        let pieces = rates.iter().zip(ends);
        pieces
            .map(|(rate, end_ns)| {
                let length_ns = end_ns.min(until_ns).saturating_sub(rate.from_ns);
                rate.per_second * length_ns as f64 / 1e9
            })
            .sum()
    }

    /// Checks the trace.
    ///
    /// # Errors
    /// The first problem found.
    pub fn check(&self) -> Result<(), &'static str> {
        if self.shared_by == 0 {
            return Err("it must be shared by at least one stream");
        }
        let ascending = match &self.arrivals {
            Arrivals::Offsets(offsets) if offsets.is_empty() => return Err("it has no entry"),
            Arrivals::Rates(rates) if rates.is_empty() => return Err("it has no entry"),
            Arrivals::Offsets(offsets) => offsets.is_sorted(),
            Arrivals::Rates(rates) => rates.is_sorted_by(|a, b| a.from_ns < b.from_ns),
        };
        if !ascending {
            return Err("its times must ascend");
        }
        let last_ns = match &self.arrivals {
            Arrivals::Offsets(offsets) => offsets.last().copied(),
            Arrivals::Rates(rates) => {
                if rates[0].from_ns != 0 {
                    return Err("its first rate must begin at 0");
                }
                if rates.iter().any(|rate| !rate.per_second.is_finite() || rate.per_second < 0.0) {
                    return Err("its rates must be numbers from 0 on");
                }
                rates.last().map(|rate| rate.from_ns)
            }
        };
        if self.repeat_ns.is_some_and(|repeat_ns| repeat_ns <= last_ns.unwrap_or(0)) {
            return Err("it must be repeated after its last entry");
        }
        let silent = match &self.arrivals {
            Arrivals::Offsets(_) => false,
            Arrivals::Rates(rates) => rates.iter().all(|rate| rate.per_second == 0.0),
        };
        if silent { Err("all its rates are 0") } else { Ok(()) }
    }
}

/// A factor on rates, as a fraction to keep rates exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scale {
    /// Numerator, at least 1.
    pub num: u64,
    /// Denominator, at least 1.
    pub den: u64,
}

impl Scale {
    /// The rates as planned.
    pub const ONE: Self = Self { num: 1, den: 1 };

    /// As a number.
    pub(crate) fn factor(self) -> f64 {
        self.num as f64 / self.den as f64
    }
}
