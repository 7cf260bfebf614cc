//! Samples of broker and host, taken together.

use tacho_monitor::{CpuSource, HostSample, HostSampler, ProcessSample, ProcessSampler};

use tacho_monitor::now_ns;

/// Samples what can be sampled; what cannot is absent.
#[derive(Debug)]
pub(crate) struct Probe {
    host: Option<HostSampler>,
    broker: Option<(u32, ProcessSampler)>,
    /// Cores that the broker may use, when it is better known than from the process itself.
    broker_cores: Vec<usize>,
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
    /// Cores that the broker may use; empty when unknown.
    pub(crate) broker_cores: Vec<usize>,
}

/// What was used between two moments.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Usage {
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
    /// CPU time of all programs on the host in nanoseconds, interrupts left out.
    pub(crate) host_programs_ns: Option<u64>,
    /// 1 - idle of the host.
    pub(crate) host_cpu_percent: Option<f64>,
    /// Steal of the host.
    pub(crate) host_steal_percent: Option<f64>,
    /// Memory in use on the host at the end.
    pub(crate) host_memory_percent: Option<f64>,
}

impl Probe {
    /// Samples the broker `broker_pid` if known, and the host if the broker runs on
    /// it (`same_host`).
    pub(crate) fn new(broker_pid: Option<u32>, broker_cores: Vec<usize>, same_host: bool) -> Self {
        Self {
            host: same_host.then(HostSampler::default),
            broker: broker_pid.map(|pid| (pid, ProcessSampler::new(pid))),
            broker_cores,
        }
    }

    /// From now on the broker is this process.
    pub(crate) fn follow(&mut self, pid: Option<u32>) {
        if pid != self.broker.as_ref().map(|(known, _)| *known) {
            self.broker = pid.map(|pid| (pid, ProcessSampler::new(pid)));
        }
    }

    /// Samples now.
    pub(crate) fn sample(&mut self) -> Samples {
        // Each is stamped with its own time: reading the files of many threads takes a while.
        let broker_pid = self.broker.as_ref().map(|(pid, _)| *pid);
        let broker = self.broker.as_mut().and_then(|(_, broker)| broker.sample(now_ns()).ok());
        let host = self.host.as_ref().and_then(|host| host.sample(now_ns()).ok());
        let mut broker_cores = self.broker_cores.clone();
        if let (true, Some(broker)) = (broker_cores.is_empty(), &broker) {
            broker_cores.clone_from(&broker.cores_allowed);
        }
        Samples { broker_pid, host, broker, broker_cores }
    }
}

impl Samples {
    /// What was used between `earlier` and this.
    pub(crate) fn since(&self, earlier: &Self) -> Usage {
        let cores = Some(self.broker_cores.len()).filter(|cores| *cores > 0);
        let mut usage = Usage { broker_cores: cores, ..Usage::default() };
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
            usage.host_cpu_percent = Some(now.not_idle_percent_since(before));
            usage.host_programs_ns = Some(now.cpu_since(before).programs_ns());
            usage.host_steal_percent = Some(now.cpu_since(before).steal_percent());
            if !self.broker_cores.is_empty() && now.cores_add_up_since(before, &self.broker_cores) {
                usage.broker_cores_busy_percent =
                    Some(now.busy_percent_since(before, &self.broker_cores));
            }
        }
        usage.host_memory_percent = self.host.as_ref().map(HostSample::memory_percent);
        usage
    }
}
