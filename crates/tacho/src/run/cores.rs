//! Which cores broker and generator run on.

use tacho_lab::scenario::Scenario;
use tacho_net::{bind_to_cpus, usable_cpus};

use super::arguments::RunArguments;
use super::broker::Target;
use crate::exit::{self, Failure};

/// The division of the machine's cores.
#[derive(Debug)]
pub(super) struct Cores {
    /// Cores of the broker that the run starts; empty leaves it to the system.
    pub(super) broker: Vec<usize>,
    /// Cores of the generator's threads; empty leaves it to the system.
    pub(super) generator: Vec<usize>,
    /// Generator threads.
    pub(super) threads: usize,
}

impl Cores {
    /// Gives a broker that the run starts one half of the cores that this process may use, and the
    /// generator the other, unless the arguments say otherwise.
    pub(super) fn choose(
        arguments: &RunArguments,
        scenario: &Scenario,
        target: &Target,
    ) -> Result<Self, Failure> {
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
        if target.starts_a_broker() && allowed.len() >= 2 {
            let (first, second) = allowed.split_at(allowed.len() / 2);
            (broker, generator) = (first.to_vec(), second.to_vec());
        }
        if let Some(cores) = &arguments.broker_cores {
            broker.clone_from(&cores.0);
        }
        if let Some(cores) = &arguments.generator_cores {
            generator.clone_from(&cores.0);
        }
        let threads = match (scenario.load.threads, generator.len()) {
            (Some(threads), _) => usize::from(threads),
            (None, 0) if target.is_local() => (allowed.len() / 2).max(1),
            (None, 0) => allowed.len().max(1),
            (None, cores) => cores,
        };
        Ok(Self { broker, generator, threads })
    }

    /// Runs `start` while this thread may only use the broker's cores: what it starts inherits
    /// them.
    pub(super) fn for_broker<T>(&self, start: impl FnOnce() -> T) -> T {
        if self.broker.is_empty() {
            return start();
        }
        let before = allowed_cores();
        bind(&self.broker);
        let started = start();
        bind(&before);
        started
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
