//! Whose CPU an objective such as `cpu<=75%` is about.

use crate::step::Step;
use crate::target::Placement;

/// Whose CPU it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhoseCpu {
    /// 1 - idle of the broker's host, which the generator does not share.
    Host,
    /// 1 - idle - steal of the cores that the broker was given on a shared machine.
    BrokerCores,
    /// CPU of the broker process, divided by the cores that it may use.
    BrokerProcess,
}

impl WhoseCpu {
    /// As the record writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::BrokerCores => "broker cores",
            Self::BrokerProcess => "broker process",
        }
    }

    /// In a sentence.
    pub const fn explained(self) -> &'static str {
        match self {
            Self::Host => "1 - idle of the broker's host",
            Self::BrokerCores => "1 - idle - steal of the broker's cores",
            Self::BrokerProcess => "the broker process, in percent of the cores it may use",
        }
    }

    /// The CPU that counts, of what is known: of the host when the broker has one of its own, of
    /// its cores when it was pinned on a shared machine, of the process otherwise.
    ///
    /// Cores cannot be less busy than the broker on them. Where the kernel says so all the same
    /// (it counts a core's states by ticks, and in virtual machines 37 % exact were seen as 19 %),
    /// the process is what counts.
    pub fn settle(
        host: Option<f64>,
        cores: Option<f64>,
        process: Option<f64>,
    ) -> Option<(Self, f64)> {
        match (host, cores, process) {
            (Some(host), ..) => Some((Self::Host, host)),
            (None, Some(cores), process) if process.is_none_or(|process| process <= cores) => {
                Some((Self::BrokerCores, cores))
            }
            (None, _, process) => process.map(|process| (Self::BrokerProcess, process)),
        }
    }

    /// CPU of a process, one core = 100, in percent of `cores`; `None` if these are unknown.
    pub fn share(cpu: Option<f64>, cores: Option<usize>) -> Option<f64> {
        let (cpu, cores) = cpu.zip(cores.filter(|cores| *cores > 0))?;
        Some((cpu / cores as f64 * 100.0).round() / 100.0)
    }

    /// Reads what the record has.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Host, Self::BrokerCores, Self::BrokerProcess]
            .into_iter()
            .find(|known| known.name() == name)
    }
}

impl Step {
    /// Fills in [`Step::cpu_percent`]; `broker_cores` is how many cores the broker may use.
    pub fn settle_cpu(&mut self, placement: &Placement, broker_cores: Option<usize>) {
        self.broker_cores_used = broker_cores.map(|cores| cores as u64);
        let found = WhoseCpu::settle(
            self.host_cpu_percent.filter(|_| !placement.one_machine),
            self.broker_cores_busy_percent.filter(|_| !placement.broker_cores.is_empty()),
            WhoseCpu::share(self.broker_cpu_percent, broker_cores),
        );
        self.cpu_percent = found.map(|(_, cpu)| cpu);
        self.whose_cpu = found.map(|(whose, _)| whose.name().to_owned());
    }

    /// With several brokers the busier one's CPU is the step's.
    pub fn settle_busier(&mut self) {
        let known = self.targets.iter().filter_map(|target| Some((target, target.cpu_percent?)));
        if let Some((target, cpu)) = known.max_by(|left, right| left.1.total_cmp(&right.1)) {
            self.cpu_percent = Some(cpu);
            self.whose_cpu.clone_from(&target.whose_cpu);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(one_machine: bool, pinned: bool, cores: Option<usize>) -> (Option<f64>, String) {
        let mut step = Step {
            host_cpu_percent: Some(40.0),
            broker_cores_busy_percent: Some(95.0),
            broker_cpu_percent: Some(90.0),
            ..Step::default()
        };
        let broker_cores = if pinned { vec![0] } else { vec![] };
        let placement = Placement { one_machine, broker_cores, ..Placement::default() };
        step.settle_cpu(&placement, cores);
        (step.cpu_percent, step.whose_cpu.unwrap_or_default())
    }

    #[test]
    fn cores_are_at_least_as_busy_as_the_broker_on_them() {
        let mut step = Step {
            broker_cores_busy_percent: Some(18.5),
            broker_cpu_percent: Some(37.2),
            ..Step::default()
        };
        let placement =
            Placement { one_machine: true, broker_cores: vec![0], ..Placement::default() };
        step.settle_cpu(&placement, Some(1));
        assert_eq!(
            (step.cpu_percent, step.whose_cpu.as_deref()),
            (Some(37.2), Some("broker process"))
        );
    }

    #[test]
    fn the_owner_of_the_figure_follows_from_host_and_pinning() {
        assert_eq!(settled(false, false, None), (Some(40.0), "host".to_owned()));
        assert_eq!(settled(true, true, Some(1)), (Some(95.0), "broker cores".to_owned()));
        assert_eq!(settled(true, false, Some(2)), (Some(45.0), "broker process".to_owned()));
        assert_eq!(settled(true, false, None), (None, String::new()));
        for whose in [WhoseCpu::Host, WhoseCpu::BrokerCores, WhoseCpu::BrokerProcess] {
            assert_eq!(WhoseCpu::parse(whose.name()), Some(whose));
        }
    }
}
