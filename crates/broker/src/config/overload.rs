//! Load shedding: thresholds and the order of the steps.

use serde::{Deserialize, Serialize};

use super::{ConfigError, check_range};

/// The steps of load shedding. Each shard measures the lag of its event loop, and the buffers of
/// all connections relative to `limits.buffers_bytes_max`. A step is entered after a window that
/// meets its threshold, at most one step per window, and left after `calm_windows` windows with all
/// values below half of the threshold.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Overload {
    /// Milliseconds of a window: lag is averaged over it, and the step may change after it.
    pub window_ms: u32,
    /// Windows below half of the threshold before a step is left.
    pub calm_windows: u32,
    /// Milliseconds of lag from which on accepting is slowed. 0: always, for tests.
    pub lag_slow_accepts_ms: u32,
    /// Milliseconds of lag from which on slow readers get no QoS 0 messages.
    pub lag_shed_qos0_ms: u32,
    /// Milliseconds of lag from which on the heaviest publishers are held back.
    pub lag_throttle_ms: u32,
    /// Milliseconds of lag from which on new connections are refused.
    pub lag_refuse_ms: u32,
    /// Percentage of `limits.buffers_bytes_max` from which on accepting is slowed.
    pub memory_slow_accepts_percent: u32,
    /// Percentage of it from which on slow readers get no QoS 0 messages.
    pub memory_shed_qos0_percent: u32,
    /// Percentage of it from which on the heaviest publishers are held back.
    pub memory_throttle_percent: u32,
    /// Percentage of it from which on new connections are refused.
    pub memory_refuse_percent: u32,
    /// Microseconds per turn for accepting connections and for their handshakes while other events
    /// wait; at least one of each is handled.
    pub newcomers_us: u32,
    /// Connections accepted per second and shard while accepting is slowed.
    pub slow_accepts_per_s: u32,
    /// Unsent bytes from which on a reader counts as slow.
    pub slow_reader_bytes: usize,
}

impl Default for Overload {
    fn default() -> Self {
        Self {
            window_ms: 250,
            calm_windows: 8,
            lag_slow_accepts_ms: 100,
            lag_shed_qos0_ms: 250,
            lag_throttle_ms: 500,
            lag_refuse_ms: 2_000,
            memory_slow_accepts_percent: 50,
            memory_shed_qos0_percent: 60,
            memory_throttle_percent: 75,
            memory_refuse_percent: 90,
            newcomers_us: 2_000,
            slow_accepts_per_s: 200,
            slow_reader_bytes: 64 * 1024,
        }
    }
}

impl Overload {
    /// Thresholds of the lag in milliseconds per step, the lowest step first.
    pub(crate) const fn lags_ms(&self) -> [u32; 4] {
        [self.lag_slow_accepts_ms, self.lag_shed_qos0_ms, self.lag_throttle_ms, self.lag_refuse_ms]
    }

    /// Thresholds of memory in percent per step, the lowest step first.
    pub(crate) const fn memory_percents(&self) -> [u32; 4] {
        [
            self.memory_slow_accepts_percent,
            self.memory_shed_qos0_percent,
            self.memory_throttle_percent,
            self.memory_refuse_percent,
        ]
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let not_zero = "at least 1";
        for (key, value) in [
            ("overload.window_ms", self.window_ms),
            ("overload.calm_windows", self.calm_windows),
            ("overload.newcomers_us", self.newcomers_us),
            ("overload.slow_accepts_per_s", self.slow_accepts_per_s),
        ] {
            check_range(key, value.into(), 1, u64::MAX, not_zero)?;
        }
        let rising = "at least the threshold of the previous step";
        let keys = [
            ("overload.lag_shed_qos0_ms", "overload.memory_shed_qos0_percent"),
            ("overload.lag_throttle_ms", "overload.memory_throttle_percent"),
            ("overload.lag_refuse_ms", "overload.memory_refuse_percent"),
        ];
        let (lags, memory) = (self.lags_ms(), self.memory_percents());
        for (step, (lag_key, memory_key)) in keys.into_iter().enumerate() {
            check_range(lag_key, lags[step + 1].into(), lags[step].into(), u64::MAX, rising)?;
            let (value, min) = (memory[step + 1].into(), memory[step].into());
            check_range(memory_key, value, min, u64::MAX, rising)?;
        }
        Ok(())
    }
}
