//! Which cores brokers and generator run on.

use tacho_net::{bind_to_cpus, usable_cpus};

use crate::error::RigError;

/// The division of the machine's cores.
#[derive(Clone, Debug)]
pub struct Cores {
    /// Cores of the brokers that the run starts; empty leaves it to the system.
    broker: Vec<usize>,
    /// Cores of the generator's threads; empty leaves it to the system.
    generator: Vec<usize>,
    /// All cores that this process may use.
    allowed: Vec<usize>,
}

/// One of several brokers that divide the cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrokerShare {
    /// Which one, counted from 0.
    pub index: usize,
    /// How many there are.
    pub count: usize,
}

impl Cores {
    /// The cores that are asked for. Where none are and brokers are started on this machine, they
    /// get one half of the cores that this process may use, and the generator gets the other.
    ///
    /// # Errors
    /// When a core is asked for that this process may not use.
    pub fn divide(
        broker: Option<&[usize]>,
        generator: Option<&[usize]>,
        starts_a_broker: bool,
    ) -> Result<Self, RigError> {
        let allowed = allowed_cores();
        for core in [broker, generator].into_iter().flatten().flatten() {
            if !allowed.contains(core) {
                return Err(RigError::NoSuchCore { core: *core, available: allowed });
            }
        }
        let halves = match starts_a_broker && allowed.len() >= 2 {
            true => allowed.split_at(allowed.len() / 2),
            false => (&[][..], &[][..]),
        };
        Ok(Self {
            broker: broker.unwrap_or(halves.0).to_vec(),
            generator: generator.unwrap_or(halves.1).to_vec(),
            allowed,
        })
    }

    /// Cores of all brokers; empty where the system chooses.
    pub fn broker(&self) -> &[usize] {
        &self.broker
    }

    /// Cores of the generator; empty where the system chooses.
    pub fn generator(&self) -> &[usize] {
        &self.generator
    }

    /// The cores of one broker: its share of all, or all where there are too few to divide.
    pub fn of_broker(&self, BrokerShare { index, count }: BrokerShare) -> &[usize] {
        match self.broker.len() / count.max(1) {
            0 => &self.broker,
            _ => {
                let from = index * self.broker.len() / count;
                let to = (index + 1) * self.broker.len() / count;
                &self.broker[from..to]
            }
        }
    }

    /// Generator threads: as many as `asked`, else one per core of the generator.
    pub fn generator_threads(&self, asked: Option<u16>, broker_is_local: bool) -> usize {
        match (asked, self.generator.len()) {
            (Some(threads), _) => usize::from(threads),
            (None, 0) if broker_is_local => (self.allowed.len() / 2).max(1),
            (None, 0) => self.allowed.len().max(1),
            (None, cores) => cores,
        }
    }

    /// Runs `start` while this thread may only use the cores of one broker: the processes that it
    /// starts inherit them.
    pub(crate) fn pinned<T>(&self, share: BrokerShare, start: impl FnOnce() -> T) -> T {
        if self.broker.is_empty() {
            return start();
        }
        let before = allowed_cores();
        bind(self.of_broker(share));
        let started = start();
        bind(&before);
        started
    }

    /// Cores for threads that neither generate load nor serve it: those that neither broker nor
    /// generator has; where there are none, the generator's if it sleeps between messages. If it
    /// spins, such a thread makes it wait each time (3 % of the time was measured), while a broker
    /// below a full core has idle time for them: then the broker's. Empty leaves it to the system.
    pub fn of_bystanders(&self, generator_spins: bool) -> Vec<usize> {
        let without = |taken: &[&[usize]]| -> Vec<usize> {
            let is_free = |core: &&usize| !taken.iter().any(|taken| taken.contains(core));
            self.allowed.iter().filter(is_free).copied().collect()
        };
        match without(&[&self.broker, &self.generator]) {
            spare if !spare.is_empty() => spare,
            _ if generator_spins => without(&[&self.generator]),
            _ => without(&[&self.broker]),
        }
    }

    /// Binds this thread, and the threads that it starts, to the generator's cores.
    pub fn pin_generator(&self) {
        move_to(&self.generator);
    }
}

/// Binds this thread, and the threads that it starts, to `cores`, unless there are none; without
/// effect where the system does not allow it.
pub fn move_to(cores: &[usize]) {
    if !cores.is_empty() {
        bind(cores);
    }
}

/// The cores that this thread may use. A system without pinning counts as one core.
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

    const fn share(index: usize, count: usize) -> BrokerShare {
        BrokerShare { index, count }
    }

    #[test]
    fn several_brokers_divide_the_cores() {
        let cores = |broker: &[usize]| Cores {
            broker: broker.to_vec(),
            generator: vec![],
            allowed: vec![0, 1, 2, 3],
        };
        assert_eq!(cores(&[0, 1, 2]).of_broker(share(0, 1)), [0, 1, 2]);
        assert_eq!(cores(&[0, 1, 2]).of_broker(share(0, 2)), [0]);
        assert_eq!(cores(&[0, 1, 2]).of_broker(share(1, 2)), [1, 2]);
        assert_eq!(cores(&[0]).of_broker(share(1, 2)), [0]);
        assert!(cores(&[]).of_broker(share(1, 2)).is_empty());
    }

    #[test]
    fn bystanders_are_kept_from_measured_cores() {
        let cores = |broker: &[usize], generator: &[usize], spins| {
            let (broker, generator) = (broker.to_vec(), generator.to_vec());
            Cores { broker, generator, allowed: vec![0, 1, 2, 3] }.of_bystanders(spins)
        };
        for spins in [false, true] {
            assert_eq!(cores(&[0, 1], &[2], spins), [3]);
            assert_eq!(cores(&[], &[], spins), [0, 1, 2, 3]);
            assert!(cores(&[0, 1, 2, 3], &[0, 1, 2, 3], spins).is_empty());
        }
        assert_eq!(cores(&[0, 1], &[2, 3], false), [2, 3]);
        assert_eq!(cores(&[0, 1], &[2, 3], true), [0, 1]);
    }
}
