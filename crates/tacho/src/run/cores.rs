//! Which cores brokers and generator run on.

use tacho_lab::scenario::Scenario;
use tacho_net::{bind_to_cpus, usable_cpus};

use super::broker::Target;
use super::target_arguments::TargetArguments;
use crate::exit::{self, Failure};

/// The division of the machine's cores.
#[derive(Clone, Debug)]
pub(super) struct Cores {
    /// Cores of the brokers that the run starts; empty leaves it to the system.
    pub(super) broker: Vec<usize>,
    /// Cores of the generator's threads; empty leaves it to the system.
    pub(super) generator: Vec<usize>,
    /// All cores that this process may use.
    allowed: Vec<usize>,
}

impl Cores {
    /// Gives brokers that the run starts one half of the cores that this process may use, and the
    /// generator the other, unless the arguments say otherwise.
    pub(super) fn choose(arguments: &TargetArguments, targets: &[Target]) -> Result<Self, Failure> {
        let allowed = allowed_cores();
        let given = [&arguments.broker_cores, &arguments.generator_cores];
        for core in given.into_iter().flatten().flat_map(|list| &list.0) {
            if !allowed.contains(core) {
                return Err(Failure::new(
                    exit::INVALID_CONFIG,
                    format!("there is no core {core} that this process may use, only {allowed:?}"),
                ));
            }
        }
        let (mut broker, mut generator) = (Vec::new(), Vec::new());
        if targets.iter().any(Target::starts_a_broker) && allowed.len() >= 2 {
            let (first, second) = allowed.split_at(allowed.len() / 2);
            (broker, generator) = (first.to_vec(), second.to_vec());
        }
        if let Some(cores) = &arguments.broker_cores {
            broker.clone_from(&cores.0);
        }
        if let Some(cores) = &arguments.generator_cores {
            generator.clone_from(&cores.0);
        }
        Ok(Self { broker, generator, allowed })
    }

    /// The cores of broker `index` of `count`: its part of all, or all where there are too few to
    /// divide.
    pub(super) fn of_broker(&self, (index, count): (usize, usize)) -> &[usize] {
        match self.broker.len() / count.max(1) {
            0 => &self.broker,
            _ => {
                let from = index * self.broker.len() / count;
                let to = (index + 1) * self.broker.len() / count;
                &self.broker[from..to]
            }
        }
    }

    /// Generator threads for a run of `scenario`.
    pub(super) fn threads(&self, scenario: &Scenario, broker_is_local: bool) -> usize {
        match (scenario.load.threads, self.generator.len()) {
            (Some(threads), _) => usize::from(threads),
            (None, 0) if broker_is_local => (self.allowed.len() / 2).max(1),
            (None, 0) => self.allowed.len().max(1),
            (None, cores) => cores,
        }
    }

    /// Runs `start` while this thread may only use the cores of broker `index` of `count`: what it
    /// starts inherits them.
    pub(super) fn for_broker<T>(&self, which: (usize, usize), start: impl FnOnce() -> T) -> T {
        if self.broker.is_empty() {
            return start();
        }
        let before = allowed_cores();
        bind(self.of_broker(which));
        let started = start();
        bind(&before);
        started
    }

    /// Cores for what only watches: those of nobody else, or where there are none those that no
    /// broker has, since what is spent there counts as theirs. Empty leaves it to the system.
    pub(super) fn of_bystanders(&self) -> Vec<usize> {
        let without = |taken: &[&[usize]]| -> Vec<usize> {
            let is_free = |core: &&usize| !taken.iter().any(|taken| taken.contains(core));
            self.allowed.iter().filter(is_free).copied().collect()
        };
        match without(&[&self.broker, &self.generator]) {
            none if none.is_empty() => without(&[&self.broker]),
            spare => spare,
        }
    }

    /// Keeps this thread, and those that it starts, away from the broker's cores.
    pub(super) fn pin_this_thread(&self) {
        if !self.generator.is_empty() {
            bind(&self.generator);
        }
    }
}

/// The cores that this thread may use; without pinning one core looks like all of them.
fn allowed_cores() -> Vec<usize> {
    let cores = usable_cpus();
    if cores.is_empty() { vec![0] } else { cores }
}

/// Binds this thread to `cores`; without effect where the system does not allow it.
fn bind(cores: &[usize]) {
    let _ = bind_to_cpus(cores);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_brokers_divide_the_cores() {
        let cores = |broker: &[usize]| Cores {
            broker: broker.to_vec(),
            generator: vec![],
            allowed: vec![0, 1, 2, 3],
        };
        assert_eq!(cores(&[0, 1, 2]).of_broker((0, 1)), [0, 1, 2]);
        assert_eq!(cores(&[0, 1, 2]).of_broker((0, 2)), [0]);
        assert_eq!(cores(&[0, 1, 2]).of_broker((1, 2)), [1, 2]);
        assert_eq!(cores(&[0]).of_broker((1, 2)), [0]);
        assert!(cores(&[]).of_broker((1, 2)).is_empty());
    }

    #[test]
    fn bystanders_are_kept_from_measured_cores() {
        let cores = |broker: &[usize], generator: &[usize]| {
            let (broker, generator) = (broker.to_vec(), generator.to_vec());
            Cores { broker, generator, allowed: vec![0, 1, 2, 3] }.of_bystanders()
        };
        assert_eq!(cores(&[0, 1], &[2]), [3]);
        assert_eq!(cores(&[0, 1], &[2, 3]), [2, 3]);
        assert_eq!(cores(&[], &[]), [0, 1, 2, 3]);
        assert!(cores(&[0, 1, 2, 3], &[0, 1, 2, 3]).is_empty());
    }
}
