//! The watched hosts of one run: rows on its time axis, figures per step, what went wrong.

use tacho_monitor::{
    HostRow, HostSampler, MonitorSpec, ProcessSelector, SourceReport, SourceSpec, WatchedProcess,
};

use super::broker_use::{BrokerPlace, complete_targets, spent_by};
use super::target::RunTarget;
use crate::findings::finding;
use tacho_record::{
    Finding, HostUse, MetricUse, MonitorRecord, Observation, ResourceRow, SeriesRow, Severity, Step,
};

/// Share of a window that a source must cover.
const COVERAGE: f64 = 0.8;

/// Rows that are older than this when a second ends say nothing about it.
const ROW_AGE_S_MAX: f64 = 2.5;

/// As many rows as all sources deliver within that time.
const ROWS_LOOKED_AT: usize = 64;

/// What to watch: what was asked for, and this machine where a broker runs on it.
pub(super) fn specs(asked: &[MonitorSpec], targets: &[RunTarget]) -> Vec<MonitorSpec> {
    let mut specs = asked.to_vec();
    for spec in &mut specs {
        let elsewhere = matches!(spec.source, SourceSpec::Agent { .. });
        if elsewhere && spec.processes.is_empty() {
            // Without a word on processes: the broker's, by its port.
            let own = |target: &&RunTarget| match &spec.target {
                Some(name) => target.record.name == *name,
                None => true,
            };
            let remote = targets.iter().filter(own).find(|target| !target.is_local);
            spec.processes.extend(remote.and_then(broker));
        }
    }
    let brokers: Vec<WatchedProcess> =
        targets.iter().filter(|target| target.is_local).filter_map(broker).collect();
    let local = specs.iter_mut().find(|spec| spec.source == SourceSpec::Local);
    match local {
        Some(local) => local.processes.extend(brokers),
        // Not requested: where the system does not provide it, the run continues without.
        None if targets.iter().any(|target| target.is_local) && can_be_sampled() => {
            specs.push(MonitorSpec::local(brokers));
        }
        None => {}
    }
    specs
}

/// Can this machine's figures be read at all?
fn can_be_sampled() -> bool {
    HostSampler::default().sample(0).is_ok()
}

/// How a broker's process is found: by its id where that is known, else by its port. The port may
/// be another's or that of a proxy, and the process another user's.
fn broker(target: &RunTarget) -> Option<WatchedProcess> {
    // One that is killed and started again is another process each time.
    let pid = target.record.pid.filter(|_| !target.course.is_killed());
    let (selector, optional) = match (pid, target.addresses.first()) {
        (Some(pid), _) => (ProcessSelector::Pid(pid), false),
        (None, Some(address)) => (ProcessSelector::Port(address.addr.port()), true),
        (None, None) => return None,
    };
    let name = &target.record.name;
    let target = (!name.is_empty()).then(|| name.clone());
    Some(WatchedProcess { selector, target, optional })
}

/// Rows and windows of a run.
#[derive(Debug, Default)]
pub(super) struct Hosts {
    started_ns: u64,
    rows: Vec<ResourceRow>,
    /// Sources with how often they should deliver, in seconds.
    sources: Vec<(String, Option<String>, f64)>,
    reports: Vec<SourceReport>,
    places: Vec<BrokerPlace>,
}

impl Hosts {
    /// Begins at `started_ns` with what is watched.
    pub(super) fn new(started_ns: u64, specs: &[MonitorSpec], targets: &[RunTarget]) -> Self {
        let source = |spec: &MonitorSpec| {
            (spec.source.to_string(), spec.target.clone(), spec.interval.as_secs_f64())
        };
        Self {
            started_ns,
            sources: specs.iter().map(source).collect(),
            rows: Vec::new(),
            reports: Vec::new(),
            places: targets.iter().map(BrokerPlace::of).collect(),
        }
    }

    /// Takes a row; returns it on the run's time axis.
    pub(super) fn take(&mut self, host: HostRow) -> &ResourceRow {
        let at_ns = i128::from(host.at_ns) - i128::from(self.started_ns);
        self.rows.push(ResourceRow { at_s: at_ns as f64 / 1e9, host });
        // Invariant: a row was pushed right above.
        &self.rows[self.rows.len() - 1]
    }

    /// Takes what the sources say at the end.
    pub(super) fn end(&mut self, reports: Vec<SourceReport>) {
        self.reports = reports;
    }

    /// All rows.
    pub(super) fn into_rows(self) -> Vec<ResourceRow> {
        self.rows
    }

    /// Completes a second with what hosts elsewhere said last.
    pub(super) fn complete_row(&self, row: &mut SeriesRow) {
        if row.host_cpu_percent.is_some() && row.broker_cpu_percent.is_some() {
            return;
        }
        let end_s = row.start_s + row.length_s;
        let recent: Vec<ResourceRow> = self.recent(end_s).cloned().collect();
        let used = HostUse::of_rows(&recent, f64::MIN, f64::MAX);
        if let (None, Some(host)) = (row.host_cpu_percent, busiest(&used)) {
            row.host_cpu_percent = mean(host, "cpu_not_idle_percent");
            row.host_busy_percent = mean(host, "cpu_busy_percent");
            row.host_steal_percent = mean(host, "cpu_steal_percent");
            row.host_memory_percent = mean(host, "memory_used_percent");
        }
        if let (None, Some(process)) = (row.broker_cpu_percent, broker_process(&used)) {
            row.broker_cpu_percent = Some(process.cpu_percent);
            row.broker_rss_bytes = row.broker_rss_bytes.or(process.rss_bytes);
        }
    }

    /// CPU and memory of the broker `name`, as hosts told them last; `end_s` is now.
    pub(super) fn process_of(&self, name: &str, end_s: f64) -> Option<(f64, Option<u64>)> {
        self.recent(end_s).find_map(|row| spent_by(&row.host, name))
    }

    /// What hosts said last, the newest first.
    fn recent(&self, end_s: f64) -> impl Iterator<Item = &ResourceRow> {
        let last = self.rows.iter().rev().take(ROWS_LOOKED_AT);
        last.filter(move |row| row.at_s > end_s - ROW_AGE_S_MAX)
    }

    /// Completes a step whose window began at `start_s`: what every host spent, and for brokers
    /// elsewhere the figures that the samples of this machine cannot give.
    pub(super) fn complete_step(&self, step: &mut Step, start_s: f64) {
        step.hosts = HostUse::of_rows(&self.rows, start_s, start_s + step.window_s);
        let inside: Vec<&ResourceRow> = self
            .rows
            .iter()
            .filter(|row| row.is_inside(start_s, start_s + step.window_s))
            .collect();
        complete_targets(step, &self.places, &inside);
        if step.host_cpu_percent.is_none()
            && let Some(host) = busiest(&step.hosts)
        {
            step.host_cpu_percent = mean(host, "cpu_not_idle_percent");
            step.host_busy_percent = mean(host, "cpu_busy_percent");
            step.host_steal_percent = mean(host, "cpu_steal_percent");
            step.host_memory_percent = mean(host, "memory_used_percent");
        }
        if let (None, Some(process)) = (step.broker_cpu_percent, broker_process(&step.hosts)) {
            step.broker_cpu_percent = Some(process.cpu_percent);
            step.broker_rss_bytes = step.broker_rss_bytes.or(process.rss_bytes);
            step.broker_cpu_source = Some("monitor".to_owned());
        }
    }

    /// The sources for the record.
    pub(super) fn records(&self) -> Vec<MonitorRecord> {
        let record = |report: &SourceReport| MonitorRecord {
            source: report.source.clone(),
            target: report.target.clone(),
            rows: report.rows,
            dropped: report.dropped,
            errors: report.errors,
            last_error: report.last_error.clone(),
            clock_error_us_max: report.clock_error_ns_max.map(|error_ns| error_ns as f64 / 1e3),
        };
        self.reports.iter().map(record).collect()
    }

    /// What went wrong with sources, given the windows of the steps as start and length in
    /// seconds.
    pub(super) fn findings(&self, windows: &[(f64, f64)]) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (source, target, interval_s) in &self.sources {
            let name = match target {
                Some(target) => format!("{target}={source}"),
                None => source.clone(),
            };
            let own = |row: &&ResourceRow| {
                row.host.source == *source && (target.is_none() || row.host.target == *target)
            };
            for (index, (start_s, window_s)) in windows.iter().enumerate() {
                let rows = self.rows.iter().filter(own).filter(|row| {
                    row.at_s > *start_s && row.at_s <= start_s + window_s + interval_s
                });
                let (mut covered_s, mut longest_s) = (0.0, *interval_s);
                for row in rows {
                    let length_s = row.host.length_ns as f64 / 1e9;
                    covered_s += length_s.min(row.at_s - start_s);
                    longest_s = length_s.max(longest_s);
                }
                // A source that speaks every ten seconds leaves the ends of a window open.
                let missing_s = window_s - covered_s;
                if missing_s > 2.0 * longest_s && covered_s < COVERAGE * window_s {
                    let monitor = name.clone();
                    let gap = Observation::MonitorGap { monitor, covered_s, window_s: *window_s };
                    findings.push(warning("monitor_gap", gap, Some(index)));
                }
            }
        }
        for report in &self.reports {
            let source = &report.source;
            if let Some(error) = report.last_error.as_ref().filter(|_| report.errors > 0) {
                let (monitor, errors, last) = (source.clone(), report.errors, error.clone());
                let errors = Observation::MonitorErrors { monitor, errors, last };
                findings.push(warning("monitor_error", errors, None));
            }
            if report.dropped > 0 {
                let (monitor, rows) = (source.clone(), report.dropped);
                let dropped = Observation::MonitorDropped { monitor, rows };
                findings.push(warning("monitor_dropped", dropped, None));
            }
        }
        findings
    }
}

fn warning(code: &str, observation: Observation, step: Option<usize>) -> Finding {
    finding(code, Severity::Warning, observation, step)
}

fn mean(host: &HostUse, metric: &str) -> Option<f64> {
    host.get(metric).map(|used| (used.mean * 100.0).round() / 100.0)
}

/// The brokers' host that had most to do. Hosts that are bound to a target come first; without
/// any it is all but this machine, which then only runs the generator.
fn busiest(hosts: &[HostUse]) -> Option<&HostUse> {
    let bound = hosts.iter().any(|host| host.target.is_some());
    let local = SourceSpec::Local.to_string();
    hosts
        .iter()
        .filter(|host| if bound { host.target.is_some() } else { host.source != local })
        .filter(|host| host.get("cpu_not_idle_percent").is_some())
        .max_by(|left, right| {
            let cpu = |host: &HostUse| mean(host, "cpu_not_idle_percent").unwrap_or(0.0);
            cpu(left).total_cmp(&cpu(right))
        })
}

/// CPU and memory of the broker with the most to do.
struct BrokerProcess {
    cpu_percent: f64,
    rss_bytes: Option<u64>,
}

/// The processes of the busiest host that watches some: one broker, however many processes.
fn broker_process(hosts: &[HostUse]) -> Option<BrokerProcess> {
    let of = |host: &HostUse, metric: &str| {
        let values: Vec<f64> =
            host.metrics.iter().filter(|used| used.metric == metric).map(used_mean).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>())
    };
    let brokers = hosts.iter().filter_map(|host| {
        Some(BrokerProcess {
            cpu_percent: (of(host, "process_cpu_percent")? * 100.0).round() / 100.0,
            rss_bytes: of(host, "process_rss_bytes").map(|bytes| bytes as u64),
        })
    });
    brokers.max_by(|left, right| left.cpu_percent.total_cmp(&right.cpu_percent))
}

fn used_mean(used: &MetricUse) -> f64 {
    used.mean
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tacho_monitor::{CpuPercent, ProcessRow};

    use super::*;
    use crate::run::Course;
    use tacho_record::TargetRecord;

    const SECOND_NS: u64 = 1_000_000_000;

    fn row(second: u64, source: &str, target: Option<&str>, busy: f64) -> HostRow {
        HostRow {
            at_ns: (100 + second) * SECOND_NS,
            length_ns: SECOND_NS,
            host: format!("host of {source}"),
            source: source.to_owned(),
            target: target.map(str::to_owned),
            cpu: Some(CpuPercent { user: busy, idle: 100.0 - busy, ..CpuPercent::default() }),
            processes: vec![ProcessRow {
                name: "broker".to_owned(),
                cpu_percent: Some(busy / 2.0),
                rss_bytes: Some(1000),
                ..ProcessRow::default()
            }],
            ..HostRow::default()
        }
    }

    fn spec(text: &str) -> MonitorSpec {
        MonitorSpec::parse(text).expect(text)
    }

    fn target(name: &str, port: u16, pid: Option<u32>, is_local: bool) -> RunTarget {
        let address = tacho_load::Target {
            addr: std::net::SocketAddr::from(([127, 0, 0, 1], port)),
            transport: tacho_load::Transport::Tcp,
            name: name.to_owned(),
        };
        let record = TargetRecord { name: name.to_owned(), pid, ..TargetRecord::default() };
        let course = Arc::new(Course::new(pid, false));
        RunTarget {
            record,
            addresses: vec![address],
            cores: Vec::new(),
            is_local,
            data_dir: None,
            course,
            bridges: Arc::default(),
        }
    }

    #[test]
    fn brokers_are_found_by_pid_or_port_where_they_are() {
        let targets = [
            target("node1", 1883, Some(7), true),
            target("node2", 1884, None, true),
            target("node3", 1885, None, false),
        ];
        let asked = [spec("node3=agent://a:1"), spec("agent://b:1?process=x")];
        let specs = specs(&asked, &targets);
        let processes = |index: usize| {
            let watched = specs[index].processes.iter();
            watched.map(|watched| (watched.selector.clone(), watched.optional)).collect::<Vec<_>>()
        };
        assert_eq!(processes(0), [(ProcessSelector::Port(1885), true)]);
        assert_eq!(processes(1), [(ProcessSelector::Name("x".to_owned()), false)]);
        #[cfg(target_os = "linux")]
        {
            assert_eq!(specs[2].source, SourceSpec::Local);
            let local = [(ProcessSelector::Pid(7), false), (ProcessSelector::Port(1884), true)];
            assert_eq!(processes(2), local);
            assert_eq!(specs[2].processes[1].target.as_deref(), Some("node2"));
        }
        // Nothing runs here: nothing is watched here unless asked for.
        assert!(super::specs(&[], &targets[2..]).is_empty());
    }

    #[test]
    fn a_remote_broker_gets_the_figures_of_the_busier_host() {
        let specs = [spec("node1=agent://a:1"), spec("node2=agent://b:1"), spec("local")];
        let mut hosts = Hosts::new(100 * SECOND_NS, &specs, &[]);
        for second in 1..=10 {
            hosts.take(row(second, "agent://a:1", Some("node1"), 30.0));
            hosts.take(row(second, "agent://b:1", Some("node2"), 70.0));
            hosts.take(row(second, "local", None, 99.0));
        }
        let mut step = Step { window_s: 5.0, ..Step::default() };
        hosts.complete_step(&mut step, 2.0);
        assert_eq!(step.hosts.len(), 3);
        assert_eq!(step.hosts[0].samples, 5);
        assert_eq!(step.host_cpu_percent, Some(70.0));
        // Figures of this machine's own samples stay.
        let mut step = Step { window_s: 5.0, host_cpu_percent: Some(1.0), ..Step::default() };
        hosts.complete_step(&mut step, 2.0);
        assert_eq!(step.host_cpu_percent, Some(1.0));
        assert!(hosts.findings(&[(2.0, 5.0)]).is_empty());
    }

    #[test]
    fn without_bound_hosts_this_machine_does_not_count() {
        let specs = [spec("agent://a:1"), spec("local")];
        let mut hosts = Hosts::new(100 * SECOND_NS, &specs, &[]);
        for second in 1..=4 {
            let mut local = row(second, "local", None, 99.0);
            local.processes.clear();
            hosts.take(local);
            hosts.take(row(second, "agent://a:1", None, 40.0));
        }
        let mut step = Step { window_s: 4.0, ..Step::default() };
        hosts.complete_step(&mut step, 0.0);
        assert_eq!(step.host_cpu_percent, Some(40.0));
        assert_eq!((step.broker_cpu_percent, step.broker_rss_bytes), (Some(20.0), Some(1000)));
        let mut second = SeriesRow { start_s: 3.0, length_s: 1.0, ..SeriesRow::default() };
        hosts.complete_row(&mut second);
        assert_eq!(second.host_cpu_percent, Some(40.0));
        assert_eq!(second.broker_cpu_percent, Some(20.0));
        // Long after the last row nothing is known.
        let mut second = SeriesRow { start_s: 60.0, ..SeriesRow::default() };
        hosts.complete_row(&mut second);
        assert_eq!(second.host_cpu_percent, None);
    }

    #[test]
    fn a_source_that_dies_or_errs_is_told() {
        let mut hosts = Hosts::new(100 * SECOND_NS, &[spec("agent://a:1")], &[]);
        for second in 1..=6 {
            hosts.take(row(second, "agent://a:1", None, 40.0));
        }
        hosts.end(vec![SourceReport {
            source: "agent://a:1".to_owned(),
            target: None,
            rows: 6,
            dropped: 3,
            errors: 2,
            last_error: Some("connection refused".to_owned()),
            clock_error_ns_max: Some(5000),
            description: None,
        }]);
        let findings = hosts.findings(&[(0.0, 5.0), (5.0, 15.0)]);
        let codes: Vec<&str> = findings.iter().map(|finding| finding.code.as_str()).collect();
        assert_eq!(codes, ["monitor_gap", "monitor_error", "monitor_dropped"]);
        assert_eq!(findings[0].step, Some(1));
        let told = |index: usize| tacho_report::Lang::En.finding(&findings[index]);
        assert!(told(0).contains("1 of the 15"), "{}", told(0));
        assert!(told(1).contains("2 errors, the last: connection refused"));
        assert_eq!(hosts.records()[0].clock_error_us_max, Some(5.0));
    }
}
