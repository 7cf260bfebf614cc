//! Whose CPU an objective such as `cpu<=75%` is about.

use super::{HostUse, MetricUse, Placement, Step, TargetRecord};

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
    ///
    /// Cores cannot be less busy than the broker on them. Where the kernel says so all the same
    /// (it counts a core's states by ticks, and in virtual machines 37 % exact were seen as 19 %),
    /// the process is what counts.
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
        let on_cores = match (cores, process) {
            (Some(cores), Some(process)) if process.1 > cores.1 => Some(process),
            (cores, process) => cores.or(process),
        };
        let found = host.or(on_cores);
        self.cpu_percent = found.map(|(_, cpu)| cpu);
        self.whose_cpu = found.map(|(whose, _)| whose.name().to_owned());
    }

    /// With several brokers, fills in the CPU of each, and takes that of the busier one for the
    /// step. Brokers on one machine may share cores, so it is the processes that are compared.
    /// `brokers` are the targets of the run.
    pub(crate) fn settle_targets(&mut self, placement: &Placement, brokers: &[TargetRecord]) {
        let count = self.targets.len();
        let pinned = placement.broker_cores.len();
        let cores = match (pinned, self.broker_cores_used) {
            (0, used) => used.unwrap_or(0),
            (pinned, _) if pinned < count => pinned as u64,
            (pinned, _) => (pinned / count.max(1)) as u64,
        };
        for target in &mut self.targets {
            let pid = brokers.iter().find(|broker| broker.name == target.name);
            if let Some(pid) = pid.and_then(|broker| broker.pid) {
                let process = |metric| process(&self.hosts, metric, pid);
                target.broker_cpu_percent = process("process_cpu_percent");
                target.broker_rss_bytes = process("process_rss_bytes").map(|bytes| bytes as u64);
            }
            let (whose, cpu) = match placement.one_machine {
                false => (WhoseCpu::Host, target.host_cpu_percent),
                true => {
                    let share = |cpu: f64| (cpu / cores as f64 * 100.0).round() / 100.0;
                    let cpu = target.broker_cpu_percent.filter(|_| cores > 0).map(share);
                    (WhoseCpu::BrokerProcess, cpu)
                }
            };
            target.cpu_percent = cpu;
            target.whose_cpu = cpu.map(|_| whose.name().to_owned());
        }
        let known = self.targets.iter().filter_map(|target| Some((target, target.cpu_percent?)));
        if let Some((target, cpu)) = known.max_by(|left, right| left.1.total_cmp(&right.1)) {
            self.cpu_percent = Some(cpu);
            self.whose_cpu.clone_from(&target.whose_cpu);
        }
    }
}

/// A figure of the process `pid` on one of the hosts.
fn process(hosts: &[HostUse], metric: &str, pid: u32) -> Option<f64> {
    let end = format!(":{pid}");
    let is_it = |known: &&MetricUse| {
        known.metric == metric
            && known.instance.as_deref().is_some_and(|instance| instance.ends_with(&end))
    };
    hosts.iter().flat_map(|host| &host.metrics).find(is_it).map(|known| known.mean)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::StepTarget;

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
    fn the_busier_of_two_brokers_counts() {
        let use_of = |instance: &str, mean| MetricUse {
            metric: "process_cpu_percent".to_owned(),
            instance: Some(instance.to_owned()),
            min: mean,
            mean,
            max: mean,
        };
        let metrics = vec![use_of("a:10", 40.0), use_of("b:110", 120.0)];
        let target = |name: &str| StepTarget { name: name.to_owned(), ..StepTarget::default() };
        let mut step = Step {
            targets: vec![target("node1"), target("node2")],
            hosts: vec![HostUse { metrics, ..HostUse::default() }],
            cpu_percent: Some(99.0),
            ..Step::default()
        };
        let broker = |name: &str, pid| TargetRecord {
            name: name.to_owned(),
            pid: Some(pid),
            ..TargetRecord::default()
        };
        let placement =
            Placement { one_machine: true, broker_cores: vec![0, 1, 2, 3], ..Placement::default() };
        step.settle_targets(&placement, &[broker("node1", 10), broker("node2", 110)]);
        let cpu: Vec<Option<f64>> = step.targets.iter().map(|target| target.cpu_percent).collect();
        assert_eq!(cpu, [Some(20.0), Some(60.0)]);
        assert_eq!(
            (step.cpu_percent, step.whose_cpu.as_deref()),
            (Some(60.0), Some("broker process"))
        );
        for (target, cpu) in step.targets.iter_mut().zip([30.0, 70.0]) {
            target.host_cpu_percent = Some(cpu);
        }
        step.settle_targets(&Placement::default(), &[]);
        assert_eq!((step.cpu_percent, step.whose_cpu.as_deref()), (Some(70.0), Some("host")));
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
    fn whose_it_is() {
        assert_eq!(settled(false, false, None), (Some(40.0), "host".to_owned()));
        assert_eq!(settled(true, true, Some(1)), (Some(95.0), "broker cores".to_owned()));
        assert_eq!(settled(true, false, Some(2)), (Some(45.0), "broker process".to_owned()));
        assert_eq!(settled(true, false, None), (None, String::new()));
        for whose in [WhoseCpu::Host, WhoseCpu::BrokerCores, WhoseCpu::BrokerProcess] {
            assert_eq!(WhoseCpu::parse(whose.name()), Some(whose));
        }
    }
}
