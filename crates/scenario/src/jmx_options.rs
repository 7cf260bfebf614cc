//! How a JMeter plan is read, as command lines choose it.

/// Command-line options for the translation of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct JmxOptions {
    /// How constant throughput timers pace.
    pub pacing: Pacing,
    /// The form of messages on the wire.
    pub payload: PayloadStyle,
    /// Messages under way of each publisher, instead of what its samplers say.
    pub inflight: Option<u16>,
    /// Skip unsupported elements.
    pub ignore_unknown: bool,
}

impl JmxOptions {
    /// Exact rates and sizes, nothing ignored.
    pub const DEFAULT: Self = Self {
        pacing: Pacing::Exact,
        payload: PayloadStyle::ExactSize,
        inflight: None,
        ignore_unknown: false,
    };
}

/// How a constant throughput timer paces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pacing {
    /// The throughput exactly, on an absolute schedule.
    #[default]
    Exact,
    /// As JMeter does: whole milliseconds, late messages are not caught up.
    Jmeter,
}

/// The form of messages on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PayloadStyle {
    /// As many bytes as the plan says, Tacho's header included.
    #[default]
    ExactSize,
    /// As mqtt-jmeter writes them: time stamp and separator in front, random text behind.
    Jmeter,
}
