//! The CPU of a step that objectives such as `cpu<=75%` are about.

use crate::step::Step;
use crate::target::Placement;
use crate::whose_cpu::WhoseCpu;

impl Step {
    /// Fills in [`Step::cpu_percent`]; `broker_cores` is how many cores the broker may use.
    pub fn settle_cpu(&mut self, placement: &Placement, broker_cores: Option<usize>) {
        self.broker_cores_used = broker_cores.map(|cores| cores as u64);
        let whose = WhoseCpu::of_broker(placement.one_machine);
        self.cpu_percent = match whose {
            WhoseCpu::Host => self.host_busy_percent,
            _ => WhoseCpu::share(self.broker_cpu_percent, broker_cores),
        };
        self.whose_cpu = self.cpu_percent.map(|_| whose.name().to_owned());
    }

    /// 1 - idle as published reports count it, steal included: of the broker's host where it has
    /// one of its own, of the cores that it may use otherwise.
    pub fn not_idle_percent(&self) -> Option<f64> {
        match self.whose_cpu.as_deref() == Some(WhoseCpu::Host.name()) {
            true => self.host_cpu_percent,
            false => self.broker_cores_not_idle_percent,
        }
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

    fn settled(one_machine: bool, cores: Option<usize>) -> (Option<f64>, String) {
        let mut step = Step {
            host_cpu_percent: Some(45.0),
            host_busy_percent: Some(40.0),
            broker_cores_busy_percent: Some(95.0),
            broker_cpu_percent: Some(90.0),
            ..Step::default()
        };
        step.settle_cpu(&Placement { one_machine, ..Placement::default() }, cores);
        (step.cpu_percent, step.whose_cpu.unwrap_or_default())
    }

    #[test]
    fn where_the_broker_is_decides_and_not_how_busy_its_cores_are() {
        for busy in [None, Some(18.5), Some(100.0)] {
            let mut step = Step {
                broker_cores_busy_percent: busy,
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
    }

    #[test]
    fn the_owner_of_the_figure_follows_from_where_the_broker_is() {
        assert_eq!(settled(false, None), (Some(40.0), "host".to_owned()));
        assert_eq!(settled(true, Some(1)), (Some(90.0), "broker process".to_owned()));
        assert_eq!(settled(true, Some(2)), (Some(45.0), "broker process".to_owned()));
        assert_eq!(settled(true, None), (None, String::new()));
        for whose in WhoseCpu::ALL {
            assert_eq!(WhoseCpu::parse(whose.name()), Some(*whose));
        }
    }
}
