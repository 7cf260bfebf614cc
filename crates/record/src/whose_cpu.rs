//! Whose CPU an objective such as `cpu<=75%` is about.

use crate::named::named;

named! {
    /// Whose CPU it is.
    ///
    /// One definition holds for all rows of a result: it follows from where the broker is, never
    /// from how busy something was in a row.
    pub enum WhoseCpu {
        /// 1 - idle - steal of the broker's host, which the generator does not share.
        Host = "host",
        /// 1 - idle - steal of the cores that the broker was given on a shared machine: in records
        /// of earlier versions only. The kernel counts a core's states by ticks, and in virtual
        /// machines 37 % exact were seen as 19 %.
        BrokerCores = "broker cores",
        /// User and system time of the broker's processes over elapsed time, divided by the cores
        /// that they may use. Time that the hypervisor took is not taken off the elapsed time.
        BrokerProcess = "broker process",
    }
}

impl WhoseCpu {
    /// The definition for a broker that shares the generator's machine, or that does not.
    pub const fn of_broker(one_machine: bool) -> Self {
        if one_machine { Self::BrokerProcess } else { Self::Host }
    }

    /// CPU of a process, one core = 100, in percent of `cores`; `None` if these are unknown.
    pub fn share(cpu: Option<f64>, cores: Option<usize>) -> Option<f64> {
        let (cpu, cores) = cpu.zip(cores.filter(|cores| *cores > 0))?;
        Some((cpu / cores as f64 * 100.0).round() / 100.0)
    }
}
