//! What a responder does, as a command line.

use clap::Args;

use super::hold::{Fault, Hold};

#[derive(Args, Clone, Debug)]
pub(crate) struct ResponderOptions {
    /// Core to run on
    #[arg(long)]
    pub(crate) cpu: Option<usize>,
    /// Microseconds for which every message is held
    #[arg(long, value_name = "US")]
    pub(crate) hold_us: Option<u64>,
    /// Milliseconds for which nothing leaves at the end of every period
    #[arg(long, value_name = "MS", conflicts_with = "hold_us")]
    pub(crate) stall_ms: Option<u64>,
    /// The period of the stalls, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 5_000)]
    pub(crate) stall_every_ms: u64,
    /// Messages per second that may leave; others wait
    #[arg(long, value_name = "N", conflicts_with_all = ["hold_us", "stall_ms"])]
    pub(crate) limit: Option<u64>,
    /// What to do wrong with every n-th message
    #[arg(long)]
    pub(crate) fault: Option<Fault>,
    /// The n
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub(crate) fault_every: u64,
    /// Seconds after the first message of which no hold times are recorded
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub(crate) skip: u64,
    /// Never sleep, so that no message waits for a wake-up
    #[arg(long)]
    pub(crate) spin: bool,
    /// Seconds after which it ends in any case
    #[arg(long, value_name = "S", default_value_t = 3_600)]
    pub(crate) seconds: u64,
}

impl Default for ResponderOptions {
    fn default() -> Self {
        Self {
            cpu: None,
            hold_us: None,
            stall_ms: None,
            stall_every_ms: 5_000,
            limit: None,
            fault: None,
            fault_every: 10_000,
            skip: 0,
            spin: false,
            seconds: 3_600,
        }
    }
}

impl ResponderOptions {
    /// The command line that gives these options.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let mut line = Vec::new();
        let mut push = |name: &str, value: Option<u64>| {
            line.extend(value.map(|value| format!("--{name}={value}")));
        };
        push("cpu", self.cpu.map(|cpu| cpu as u64));
        push("hold-us", self.hold_us);
        push("stall-ms", self.stall_ms);
        push("stall-every-ms", Some(self.stall_every_ms));
        push("limit", self.limit);
        push("fault-every", Some(self.fault_every));
        push("skip", Some(self.skip));
        push("seconds", Some(self.seconds));
        let fault = self.fault.map(|fault| match fault {
            Fault::Lose => "--fault=lose",
            Fault::Double => "--fault=double",
            Fault::Reorder => "--fault=reorder",
        });
        line.extend(fault.map(ToOwned::to_owned));
        line.extend(self.spin.then(|| "--spin".to_owned()));
        line
    }

    pub(super) fn hold(&self) -> Hold {
        let every_ns = self.stall_every_ms * 1_000_000;
        match (self.hold_us, self.stall_ms, self.limit) {
            (Some(us), ..) => Hold::Fixed { ns: us * 1_000 },
            (_, Some(ms), _) => Hold::Stall { every_ns, length_ns: ms * 1_000_000 },
            (_, _, Some(per_second)) => Hold::rate(per_second),
            _ => Hold::Nothing,
        }
    }
}
