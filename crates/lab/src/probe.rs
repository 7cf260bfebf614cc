//! Samples of broker and host, taken together.

use std::collections::BTreeSet;

use crate::agents::{AgentSample, AgentUsage};
use tacho_monitor::{
    CpuSource, HostSample, HostSampler, ProcRoot, ProcessSample, ProcessSampler, ProcessTable,
    ProcessTreeSampler, now_ns,
};

/// Is this the name of a generator thread? Those that steer the load and measure round
/// trips have no core of their own and may wait for it.
fn is_generator_thread(name: &str) -> bool {
    name.strip_prefix("load-").is_some_and(|number| number.parse::<u16>().is_ok())
}

/// Samples what can be sampled; what cannot is absent.
#[derive(Debug)]
pub(crate) struct Probe {
    host: Option<HostSampler>,
    broker: Option<ProcessTreeSampler>,
    /// Cores that the broker may use, when it is better known than from the process itself.
    broker_cores: Vec<usize>,
    /// This process, where the generator has cores of its own.
    generator: Option<ProcessSampler>,
    /// The last reading of all programs.
    programs: Option<ProcessTable>,
}

/// Samples of one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Samples {
    /// The broker's process, when it is known.
    pub(crate) broker_pid: Option<u32>,
    /// The machine, when the broker runs on it.
    pub(crate) host: Option<HostSample>,
    /// The broker process, when it is known.
    pub(crate) broker: Option<ProcessSample>,
    /// This process, where the generator has cores of its own.
    pub(crate) generator: Option<ProcessSample>,
    /// The broker's processes.
    pub(crate) broker_pids: BTreeSet<u32>,
    /// All programs, when the broker runs on this machine on known cores.
    pub(crate) programs: Option<ProcessTable>,
    /// Cores that the broker may use; empty when unknown.
    pub(crate) broker_cores: Vec<usize>,
    /// The agents that make the load, in their order.
    pub(crate) agents: Vec<AgentSample>,
}

/// What was used between two moments.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Usage {
    /// When the samples were taken that it is between.
    pub(crate) between_ns: Option<(u64, u64)>,
    /// CPU of the broker process, one core = 100.
    pub(crate) broker_cpu_percent: Option<f64>,
    /// CPU time of the broker process in nanoseconds.
    pub(crate) broker_cpu_ns: Option<u64>,
    /// Where it was read.
    pub(crate) broker_cpu_source: Option<CpuSource>,
    /// How many cores the broker may use.
    pub(crate) broker_cores: Option<usize>,
    /// Resident memory of the broker at the end.
    pub(crate) broker_rss_bytes: Option<u64>,
    /// Threads of the broker at the end.
    pub(crate) broker_threads: Option<u64>,
    /// 1 - idle - steal of the broker's cores.
    pub(crate) broker_cores_busy_percent: Option<f64>,
    /// 1 - idle of the broker's cores.
    pub(crate) broker_cores_not_idle_percent: Option<f64>,
    /// Interrupt work of the broker's cores.
    pub(crate) broker_cores_softirq_percent: Option<f64>,
    /// What other programs used of the broker's cores, in percent of these.
    pub(crate) others_on_broker_cores_percent: Option<f64>,
    /// The program that used most of that.
    pub(crate) others_on_broker_cores_by: Option<String>,
    /// The longest wait of a generator thread for its core, in percent.
    pub(crate) generator_waiting_percent: Option<f64>,
    /// CPU time of all programs on the host in nanoseconds, interrupts left out.
    pub(crate) host_programs_ns: Option<u64>,
    /// 1 - idle of the host.
    pub(crate) host_cpu_percent: Option<f64>,
    /// 1 - idle - steal of the host.
    pub(crate) host_busy_percent: Option<f64>,
    /// Steal of the host.
    pub(crate) host_steal_percent: Option<f64>,
    /// Memory in use on the host at the end.
    pub(crate) host_memory_percent: Option<f64>,
    /// What each agent used, in their order.
    pub(crate) agents: Vec<AgentUsage>,
}

impl Probe {
    /// Samples the broker `broker_pid` if known, and the host if the broker runs on
    /// it (`same_host`).
    pub(crate) fn new(broker_pid: Option<u32>, broker_cores: Vec<usize>, same_host: bool) -> Self {
        Self {
            host: same_host.then(HostSampler::default),
            broker: broker_pid.map(ProcessTreeSampler::new),
            broker_cores,
            generator: None,
            programs: None,
        }
    }

    /// Samples the generator as well: its threads have cores of their own, so that waiting for them
    /// is a disturbance.
    pub(crate) fn with_generator(mut self) -> Self {
        self.generator = Some(ProcessSampler::new(std::process::id()));
        self
    }

    /// From now on the broker is this process.
    pub(crate) fn follow(&mut self, pid: Option<u32>) {
        if pid != self.broker.as_ref().map(ProcessTreeSampler::pid) {
            self.broker = pid.map(ProcessTreeSampler::new);
        }
    }

    /// Samples now.
    pub(crate) fn sample(&mut self) -> Samples {
        // Each is stamped with its own time: reading the files of many threads takes a while.
        let broker_pid = self.broker.as_ref().map(ProcessTreeSampler::pid);
        let broker = self.broker.as_mut().and_then(|broker| broker.sample(now_ns()).ok());
        let broker_pids = self.broker.as_ref().map(ProcessTreeSampler::pids).unwrap_or_default();
        let host = self.host.as_ref().and_then(|host| host.sample(now_ns()).ok());
        if self.host.is_some() && !self.broker_cores.is_empty() {
            let table = ProcessTable::read(&ProcRoot::default(), now_ns(), self.programs.as_ref());
            self.programs = table.ok().flatten();
        }
        let mut broker_cores = self.broker_cores.clone();
        if let (true, Some(broker)) = (broker_cores.is_empty(), &broker) {
            broker_cores.clone_from(&broker.cores_allowed);
        }
        let programs = self.programs.clone();
        let generator = self.generator.as_mut().and_then(|own| own.sample(now_ns()).ok());
        let agents = Vec::new();
        Samples { broker_pid, host, broker, broker_pids, generator, programs, broker_cores, agents }
    }
}

impl Samples {
    /// When they were taken.
    fn at_ns(&self) -> Option<u64> {
        let host = || self.host.as_ref().map(|host| host.at_ns);
        self.broker.as_ref().map(|broker| broker.at_ns).or_else(host)
    }

    /// What was used between `earlier` and this.
    pub(crate) fn since(&self, earlier: &Self) -> Usage {
        let cores = Some(self.broker_cores.len()).filter(|cores| *cores > 0);
        let between_ns = earlier.at_ns().zip(self.at_ns());
        let mut usage = Usage { broker_cores: cores, between_ns, ..Usage::default() };
        // Another process began to count anew.
        if let (Some(now), Some(before)) = (&self.broker, &earlier.broker)
            && self.broker_pid == earlier.broker_pid
        {
            usage.broker_cpu_percent = Some(now.cpu_percent_since(before));
            usage.broker_cpu_ns = Some(now.cpu_ns.saturating_sub(before.cpu_ns));
            usage.broker_cpu_source = Some(now.cpu_source);
        }
        if let Some(now) = &self.broker {
            usage.broker_rss_bytes = Some(now.rss_bytes);
            usage.broker_threads = Some(now.threads.len() as u64);
        }
        if let (Some(now), Some(before)) = (&self.host, &earlier.host) {
            let times = now.cpu_since(before);
            usage.host_cpu_percent = Some(times.not_idle_percent());
            usage.host_busy_percent = Some(times.busy_percent());
            usage.host_programs_ns = Some(times.programs_ns());
            usage.host_steal_percent = Some(times.steal_percent());
            if !self.broker_cores.is_empty() && now.cores_add_up_since(before, &self.broker_cores) {
                let cores = now.cores_since(before, &self.broker_cores);
                usage.broker_cores_busy_percent = Some(cores.busy_percent());
                usage.broker_cores_not_idle_percent = Some(cores.not_idle_percent());
                usage.broker_cores_softirq_percent = Some(cores.interrupts_percent());
            }
        }
        self.others_since(earlier, &mut usage);
        let own = self.generator.as_ref().zip(earlier.generator.as_ref());
        usage.generator_waiting_percent =
            own.and_then(|(now, before)| now.waited_percent_since(before, is_generator_thread));
        usage.host_memory_percent = self.host.as_ref().map(HostSample::memory_percent);
        let agents = self.agents.iter().zip(&earlier.agents);
        usage.agents = agents.map(|(now, before)| now.since(before)).collect();
        usage
    }

    /// What other programs used of the broker's cores. The generator's own threads are no others:
    /// where they share the broker's cores, the placement says so.
    fn others_since(&self, earlier: &Self, usage: &mut Usage) {
        let (Some(now), Some(before)) = (&self.programs, &earlier.programs) else { return };
        let passed_ns = now.at_ns.saturating_sub(before.at_ns) * self.broker_cores.len() as u64;
        if passed_ns == 0 {
            return;
        }
        let mut own = now.tree(std::process::id());
        own.extend(&self.broker_pids);
        let used = now.used_since(before, &self.broker_cores, &own);
        usage.others_on_broker_cores_percent = Some(used.cpu_ns as f64 * 100.0 / passed_ns as f64);
        usage.others_on_broker_cores_by = used.busiest.map(|(name, _)| name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_threads_with_a_core_of_their_own_wait_because_of_others() {
        assert!(is_generator_thread("load-0") && is_generator_thread("load-12"));
        assert!(!is_generator_thread("load-control") && !is_generator_thread("load-rtt"));
    }
}
