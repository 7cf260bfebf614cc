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
    /// How rows of data files are dealt out to load machines, instead of what the plan says.
    pub rows: Option<RowDivision>,
    /// How often threads run through their group, instead of what the plan says.
    pub loops: Option<PlanLoops>,
    /// Skip unsupported elements.
    pub ignore_unknown: bool,
}

impl JmxOptions {
    /// Exact rates and sizes, nothing ignored.
    pub const DEFAULT: Self = Self {
        pacing: Pacing::Exact,
        payload: PayloadStyle::ExactSize,
        inflight: None,
        rows: None,
        loops: None,
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

/// How the rows of a data file are dealt out to load machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowDivision {
    /// Over all machines: no two threads have the same row while there are enough.
    Split,
    /// Each machine has all rows, and begins with the first.
    Copy,
}

/// How often threads run through their group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanLoops {
    /// Until the measured phase ends.
    Forever,
    /// So many times.
    Times(u32),
}

impl PlanLoops {
    /// Reads `forever` or a number of times.
    ///
    /// # Errors
    /// A sentence, when the text is neither.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.trim() {
            "forever" => Ok(Self::Forever),
            number => match number.parse() {
                Ok(times) if times > 0 => Ok(Self::Times(times)),
                _ => Err(format!("'{text}' is no number of loops: write 1 or more, or 'forever'")),
            },
        }
    }
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
