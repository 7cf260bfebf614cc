//! With several brokers: what each of them spent, and the busier one for the step.

use tacho_monitor::{CoreRow, HostRow};

use super::numbers::round;
use super::target::RunTarget;
use tacho_record::{HostUse, ResourceRow, Step, StepTarget, WhoseCpu};

/// Where a broker is.
#[derive(Clone, Debug)]
pub(super) struct BrokerPlace {
    name: String,
    /// Cores that it was given; empty when unknown.
    cores: Vec<usize>,
    is_local: bool,
}

impl BrokerPlace {
    pub(super) fn of(target: &RunTarget) -> Self {
        Self {
            name: target.record.name.clone(),
            cores: target.cores.clone(),
            is_local: target.is_local,
        }
    }
}

/// Completes the brokers of a step from the rows of its window, and the step's own figures with
/// those of the busier broker.
pub(super) fn complete_targets(step: &mut Step, places: &[BrokerPlace], rows: &[&ResourceRow]) {
    let mut targets = std::mem::take(&mut step.targets);
    for target in &mut targets {
        let place = places.iter().find(|place| place.name == target.name);
        complete(target, place, rows, &step.hosts);
    }
    if targets.len() > 1 {
        account_for_all(step, &targets);
        let most = |figure: fn(&StepTarget) -> Option<f64>| {
            targets.iter().filter_map(figure).reduce(f64::max)
        };
        let busier = |known: Option<f64>, of_targets: Option<f64>| of_targets.or(known);
        step.broker_cpu_percent =
            busier(step.broker_cpu_percent, most(|target| target.broker_cpu_percent));
        step.broker_cores_busy_percent =
            busier(step.broker_cores_busy_percent, most(|target| target.broker_cores_busy_percent));
        let rss = targets.iter().filter_map(|target| target.broker_rss_bytes).max();
        step.broker_rss_bytes = rss.or(step.broker_rss_bytes);
    }
    step.targets = targets;
}

/// The step's own samples know the first broker only: what the others spent is not that of other
/// programs, and counts per message.
fn account_for_all(step: &mut Step, targets: &[StepTarget]) {
    let all: f64 = targets.iter().filter_map(|target| target.broker_cpu_percent).sum();
    let Some(first) = step.broker_cpu_percent.filter(|first| *first > 0.0 && all > *first) else {
        return;
    };
    step.other_cpu_percent =
        step.other_cpu_percent.map(|others| round((others - (all - first)).max(0.0), 2));
    step.broker_cpu_us_per_message =
        step.broker_cpu_us_per_message.map(|cost_us| round(cost_us * all / first, 3));
}

fn complete(
    target: &mut StepTarget,
    place: Option<&BrokerPlace>,
    rows: &[&ResourceRow],
    hosts: &[HostUse],
) {
    let own = |host: &&HostUse| host.target.as_deref() == Some(target.name.as_str());
    if let Some(host) = hosts.iter().find(own) {
        let mean = |metric: &str| host.get(metric).map(|used| round(used.mean, 2));
        target.host_cpu_percent = mean("cpu_not_idle_percent");
        target.host_busy_percent = mean("cpu_busy_percent");
        target.host_memory_percent = mean("memory_used_percent");
    }
    let spent = |row: &ResourceRow| {
        let (cpu, rss) = spent_by(&row.host, &target.name)?;
        Some((cpu, rss.unwrap_or(0)))
    };
    let by_row: Vec<(&ResourceRow, (f64, u64))> =
        rows.iter().filter_map(|row| Some((*row, spent(row)?))).collect();
    target.broker_cpu_percent = mean(by_row.iter().map(|(row, (cpu, _))| (*row, *cpu)));
    target.broker_rss_bytes = by_row.last().map(|(_, (_, rss))| *rss);
    let Some(place) = place else { return };
    if place.is_local && !place.cores.is_empty() {
        let local = rows.iter().filter(|row| row.host.is_local());
        let busy = local.filter_map(|row| Some((*row, cores_busy(&row.host.cores, &place.cores)?)));
        target.broker_cores_busy_percent = mean(busy);
    }
    settle(target, place, rows);
}

/// CPU and memory of the processes of a broker in a row: it may have several.
pub(super) fn spent_by(row: &HostRow, name: &str) -> Option<(f64, Option<u64>)> {
    let own = || {
        row.processes
            .iter()
            .filter(|process| process.target.as_deref().or(row.target.as_deref()) == Some(name))
    };
    own().next()?;
    let cpu: f64 = own().filter_map(|process| process.cpu_percent).sum();
    let rss = own().filter_map(|process| process.rss_bytes).reduce(|a, b| a + b);
    Some((cpu, rss))
}

/// The CPU that objectives are about, as for a step with one broker.
fn settle(target: &mut StepTarget, place: &BrokerPlace, rows: &[&ResourceRow]) {
    let whose = WhoseCpu::of_broker(place.is_local);
    target.cpu_percent = match whose {
        WhoseCpu::Host => target.host_busy_percent,
        _ => {
            let local = rows.iter().find(|row| row.host.is_local());
            let cores = match place.cores.len() {
                0 => local.map(|row| row.host.cores.len()),
                pinned => Some(pinned),
            };
            WhoseCpu::share(target.broker_cpu_percent, cores)
        }
    };
    target.whose_cpu = target.cpu_percent.map(|_| whose.name().to_owned());
}

/// 1 - idle - steal of some cores, in percent of them; `None` when one is missing.
fn cores_busy(rows: &[CoreRow], cores: &[usize]) -> Option<f64> {
    let busy = |core: &usize| rows.iter().find(|row| row.core == *core).map(|row| row.cpu.busy());
    let all: Option<Vec<f64>> = cores.iter().map(busy).collect();
    Some(all?.iter().sum::<f64>() / cores.len() as f64)
}

/// The mean of figures, each weighted by the length of its row.
fn mean<'a>(figures: impl Iterator<Item = (&'a ResourceRow, f64)>) -> Option<f64> {
    let (mut sum, mut weights) = (0.0, 0.0);
    for (row, figure) in figures {
        let weight = row.host.length_ns.max(1) as f64;
        sum += figure * weight;
        weights += weight;
    }
    (weights > 0.0).then(|| round(sum / weights, 2))
}

#[cfg(test)]
mod tests {
    use tacho_monitor::{CpuPercent, ProcessRow};

    use super::*;

    fn process(target: &str, cpu: f64, rss_bytes: u64) -> ProcessRow {
        ProcessRow {
            name: "broker".to_owned(),
            cpu_percent: Some(cpu),
            rss_bytes: Some(rss_bytes),
            target: Some(target.to_owned()),
            ..ProcessRow::default()
        }
    }

    fn core(core: usize, busy: f64) -> CoreRow {
        let cpu = CpuPercent { user: busy, idle: 100.0 - busy, ..CpuPercent::default() };
        CoreRow { core, cpu }
    }

    #[test]
    fn two_local_brokers_have_their_own_figures_and_the_step_those_of_the_busier() {
        let rows: Vec<ResourceRow> = [(1.0, 10.0), (2.0, 30.0)]
            .map(|(at_s, cpu)| ResourceRow {
                at_s,
                host: HostRow {
                    length_ns: 1_000_000_000,
                    source: "local".to_owned(),
                    cores: vec![core(0, cpu), core(1, 2.0 * cpu), core(2, 100.0)],
                    processes: vec![
                        process("node1", cpu, 100),
                        process("node2", 2.0 * cpu, 200 + cpu as u64),
                    ],
                    ..HostRow::default()
                },
            })
            .into();
        let rows: Vec<&ResourceRow> = rows.iter().collect();
        let target = |name: &str| StepTarget { name: name.to_owned(), ..StepTarget::default() };
        let mut step = Step {
            targets: vec![target("node1"), target("node2")],
            broker_cpu_percent: Some(20.0),
            broker_cpu_us_per_message: Some(10.0),
            other_cpu_percent: Some(45.0),
            ..Step::default()
        };
        let place = |name: &str, cores: &[usize]| BrokerPlace {
            name: name.to_owned(),
            cores: cores.to_vec(),
            is_local: true,
        };
        complete_targets(&mut step, &[place("node1", &[0]), place("node2", &[1])], &rows);
        let [one, two] = &step.targets[..] else { panic!("{step:?}") };
        assert_eq!((one.broker_cpu_percent, one.broker_rss_bytes), (Some(20.0), Some(100)));
        assert_eq!((two.broker_cpu_percent, two.broker_rss_bytes), (Some(40.0), Some(230)));
        assert_eq!((one.cpu_percent, two.cpu_percent), (Some(20.0), Some(40.0)));
        assert_eq!(two.whose_cpu.as_deref(), Some("broker process"));
        assert_eq!(step.broker_cpu_percent, Some(40.0));
        assert_eq!(step.broker_cores_busy_percent, Some(40.0));
        assert_eq!(step.broker_rss_bytes, Some(230));
        // The second broker's 40 % of a core are not other programs'.
        assert_eq!(step.other_cpu_percent, Some(5.0));
        assert_eq!(step.broker_cpu_us_per_message, Some(30.0));

        // Not pinned: the process in percent of all cores.
        let mut step = Step { targets: vec![target("node1")], ..Step::default() };
        complete_targets(&mut step, &[place("node1", &[])], &rows);
        let whose = step.targets[0].whose_cpu.as_deref();
        assert_eq!((step.targets[0].cpu_percent, whose), (Some(6.67), Some("broker process")));
    }

    #[test]
    fn a_broker_elsewhere_has_its_host() {
        let rows: Vec<ResourceRow> = vec![ResourceRow {
            at_s: 1.0,
            host: HostRow {
                length_ns: 1_000_000_000,
                source: "agent://a:1".to_owned(),
                target: Some("node1".to_owned()),
                cpu: Some(CpuPercent { user: 40.0, idle: 60.0, ..CpuPercent::default() }),
                processes: vec![ProcessRow { target: None, ..process("", 55.0, 1) }],
                ..HostRow::default()
            },
        }];
        let target = StepTarget { name: "node1".to_owned(), ..StepTarget::default() };
        let mut step = Step {
            targets: vec![target],
            hosts: HostUse::of_rows(&rows, 0.0, 2.0),
            ..Step::default()
        };
        let place = BrokerPlace { name: "node1".to_owned(), cores: Vec::new(), is_local: false };
        complete_targets(&mut step, &[place], &rows.iter().collect::<Vec<_>>());
        let target = &step.targets[0];
        assert_eq!((target.cpu_percent, target.whose_cpu.as_deref()), (Some(40.0), Some("host")));
        assert_eq!(target.broker_cpu_percent, Some(55.0));
    }

    #[test]
    fn the_busier_of_two_brokers_counts() {
        let target = |name: &str| StepTarget { name: name.to_owned(), ..StepTarget::default() };
        let place = |name: &str, cores: &[usize], is_local| BrokerPlace {
            name: name.to_owned(),
            cores: cores.to_vec(),
            is_local,
        };
        let mut step = Step {
            targets: vec![target("node1"), target("node2")],
            cpu_percent: Some(99.0),
            ..Step::default()
        };
        let row = ResourceRow {
            at_s: 1.0,
            host: HostRow {
                length_ns: 1_000_000_000,
                processes: vec![process("node1", 40.0, 1), process("node2", 120.0, 1)],
                ..HostRow::default()
            },
        };
        let places = [place("node1", &[0, 1], true), place("node2", &[2, 3], true)];
        complete_targets(&mut step, &places, &[&row]);
        step.settle_busier();
        let cpu: Vec<Option<f64>> = step.targets.iter().map(|target| target.cpu_percent).collect();
        assert_eq!(cpu, [Some(20.0), Some(60.0)]);
        assert_eq!(
            (step.cpu_percent, step.whose_cpu.as_deref()),
            (Some(60.0), Some("broker process"))
        );
        for (target, cpu) in step.targets.iter_mut().zip([30.0, 70.0]) {
            target.host_busy_percent = Some(cpu);
        }
        let places = [place("node1", &[], false), place("node2", &[], false)];
        complete_targets(&mut step, &places, &[]);
        step.settle_busier();
        assert_eq!((step.cpu_percent, step.whose_cpu.as_deref()), (Some(70.0), Some("host")));
    }
}
