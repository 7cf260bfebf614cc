//! Whose CPU an objective such as `cpu<=75%` is about.

use super::{Placement, Step};

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

    /// Reads what the record has.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Host, Self::BrokerCores, Self::BrokerProcess]
            .into_iter()
            .find(|known| known.name() == name)
    }
}

impl Step {
    /// Fills in [`Step::cpu_percent`]: of the host when the broker has one of its own, of its
    /// cores when it was pinned on a shared machine, of the process otherwise. `broker_cores` is
    /// how many cores the broker may use.
    pub(crate) fn settle_cpu(&mut self, placement: &Placement, broker_cores: Option<usize>) {
        self.broker_cores_used = broker_cores.map(|cores| cores as u64);
        let of = |whose: WhoseCpu| move |cpu: f64| (whose, cpu);
        let host = self.host_cpu_percent.filter(|_| !placement.one_machine);
        let cores = self.broker_cores_busy_percent.filter(|_| !placement.broker_cores.is_empty());
        let process = self
            .broker_cpu_percent
            .zip(broker_cores.filter(|cores| *cores > 0))
            .map(|(cpu, cores)| (cpu / cores as f64 * 100.0).round() / 100.0);
        let (host, cores) = (host.map(of(WhoseCpu::Host)), cores.map(of(WhoseCpu::BrokerCores)));
        let process = process.map(of(WhoseCpu::BrokerProcess));
        let found = host.or(cores).or(process);
        self.cpu_percent = found.map(|(_, cpu)| cpu);
        self.whose_cpu = found.map(|(whose, _)| whose.name().to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(one_machine: bool, pinned: bool, cores: Option<usize>) -> (Option<f64>, String) {
        let mut step = Step {
            host_cpu_percent: Some(40.0),
            broker_cores_busy_percent: Some(60.0),
            broker_cpu_percent: Some(90.0),
            ..Step::default()
        };
        let broker_cores = if pinned { vec![0] } else { vec![] };
        let placement = Placement { one_machine, broker_cores, ..Placement::default() };
        step.settle_cpu(&placement, cores);
        (step.cpu_percent, step.whose_cpu.unwrap_or_default())
    }

    #[test]
    fn whose_it_is() {
        assert_eq!(settled(false, false, None), (Some(40.0), "host".to_owned()));
        assert_eq!(settled(true, true, Some(1)), (Some(60.0), "broker cores".to_owned()));
        assert_eq!(settled(true, false, Some(2)), (Some(45.0), "broker process".to_owned()));
        assert_eq!(settled(true, false, None), (None, String::new()));
        for whose in [WhoseCpu::Host, WhoseCpu::BrokerCores, WhoseCpu::BrokerProcess] {
            assert_eq!(WhoseCpu::parse(whose.name()), Some(whose));
        }
    }
}
