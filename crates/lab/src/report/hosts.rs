//! Panels of a watched host: CPU by state, memory, network, load, each with its least, mean and
//! greatest value over the measured time.

use super::axis::{Scale, Unit};
use super::chart::{Axis, Chart, Line, Spread, from_zero};
use super::charts::{bands, time_axis};
use crate::record::{ResourceRow, SeriesRow};
use tacho_monitor::{CpuPercent, HostRow};

/// The panels of one host.
#[derive(Debug)]
pub(super) struct Panels {
    /// Which host, what it stands for, who told.
    pub(super) title: String,
    pub(super) charts: Vec<Chart>,
}

type Figure<'a> = (String, Box<dyn Fn(&HostRow) -> Option<f64> + 'a>);

/// Panels of all hosts.
pub(super) fn panels(hosts: &[ResourceRow], rows: &[SeriesRow]) -> Vec<Panels> {
    let mut sources: Vec<(&str, &str, Option<&str>)> = Vec::new();
    for row in hosts {
        let source = identity(&row.host);
        if !sources.contains(&source) {
            sources.push(source);
        }
    }
    sources
        .into_iter()
        .map(|source| {
            let own: Vec<_> = hosts.iter().filter(|row| identity(&row.host) == source).collect();
            let (host, via, target) = source;
            let of = target.map_or_else(String::new, |name| format!(", broker {name}"));
            let via = if via.is_empty() { String::new() } else { format!(" (by {via})") };
            Panels { title: format!("Host {host}{of}{via}"), charts: charts(&own, rows) }
        })
        .collect()
}

fn identity(row: &HostRow) -> (&str, &str, Option<&str>) {
    (&row.host, &row.source, row.target.as_deref())
}

fn charts(own: &[&ResourceRow], rows: &[SeriesRow]) -> Vec<Chart> {
    let mut charts = vec![cpu(own, rows), memory(own, rows), network(own, rows), load(own, rows)];
    charts.push(trouble(own, rows));
    charts.push(pressure(own, rows));
    charts.retain(|chart| !chart.is_empty());
    charts
}

/// Lines of figures, and their spread over the measured windows (over everything without one).
fn lines(
    own: &[&ResourceRow],
    rows: &[SeriesRow],
    figures: &[Figure<'_>],
) -> (Vec<Line>, Vec<Spread>) {
    let windows = bands(rows);
    let end = rows.last().map_or(f64::INFINITY, |row| row.start_s + row.length_s);
    let middle = |row: &ResourceRow| row.at_s - row.host.length_ns as f64 / 2e9;
    let (mut lines, mut table) = (Vec::new(), Vec::new());
    for (index, (name, figure)) in figures.iter().enumerate() {
        let inside = own.iter().filter(|row| (0.0..=end).contains(&middle(row)));
        let points: Vec<_> = inside.map(|row| (middle(row), figure(&row.host))).collect();
        let measured: Vec<f64> = points
            .iter()
            .filter(|(at, _)| {
                windows.is_empty() || windows.iter().any(|band| (band.from..=band.to).contains(at))
            })
            .filter_map(|(_, value)| *value)
            .collect();
        let line = Line::plain(name, index + 1, points);
        if line.is_empty() {
            continue;
        }
        if !measured.is_empty() {
            table.push(Spread {
                name: name.clone(),
                min: measured.iter().copied().fold(f64::INFINITY, f64::min),
                mean: measured.iter().sum::<f64>() / measured.len() as f64,
                max: measured.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            });
        }
        lines.push(line);
    }
    (lines, table)
}

fn panel(
    own: &[&ResourceRow],
    rows: &[SeriesRow],
    title: &str,
    y: (&str, Unit),
    figures: &[Figure<'_>],
) -> Chart {
    let (lines, table) = lines(own, rows, figures);
    let axis = from_zero(y.0, y.1, &lines);
    Chart { bands: bands(rows), table, ..Chart::new(title, time_axis(rows), axis, lines) }
}

fn figure<'a>(name: &str, pick: impl Fn(&HostRow) -> Option<f64> + 'a) -> Figure<'a> {
    (name.to_owned(), Box::new(pick))
}

fn cpu(own: &[&ResourceRow], rows: &[SeriesRow]) -> Chart {
    let state = |name, pick: fn(&CpuPercent) -> f64| {
        figure(name, move |row: &HostRow| row.cpu.as_ref().map(pick))
    };
    let figures = [
        state("user", |cpu| cpu.user),
        state("system", |cpu| cpu.system),
        state("softirq", |cpu| cpu.softirq),
        state("irq", |cpu| cpu.irq),
        state("nice", |cpu| cpu.nice),
        state("wait-IO", |cpu| cpu.iowait),
        state("steal", |cpu| cpu.steal),
        state("idle", |cpu| cpu.idle),
    ];
    let mut chart = panel(own, rows, "CPU usage", ("percent", Unit::Percent), &figures);
    // What is idle is the white that is left; the table has it.
    chart.lines.retain(|line| line.name != "idle");
    chart.y.scale = Scale::exactly(0.0, 100.0, Unit::Percent);
    chart.stacked = true;
    chart
}

fn memory(own: &[&ResourceRow], rows: &[SeriesRow]) -> Chart {
    let memory = |name, pick: fn(&tacho_monitor::MemoryBytes) -> Option<u64>| {
        figure(name, move |row: &HostRow| {
            row.memory.as_ref().and_then(pick).map(|bytes| bytes as f64)
        })
    };
    let figures = [
        memory("used", |memory| Some(memory.used)),
        memory("buffered", |memory| Some(memory.buffered)),
        memory("cached", |memory| Some(memory.cached)),
        memory("slab, reclaimable", |memory| memory.slab_reclaimable),
        memory("slab, not reclaimable", |memory| memory.slab_unreclaimable),
        memory("free", |memory| Some(memory.free)),
    ];
    let mut chart = panel(own, rows, "Memory usage", ("bytes", Unit::Bytes), &figures);
    chart.lines.retain(|line| line.name != "free");
    let total = own.iter().filter_map(|row| row.host.memory.map(|memory| memory.total)).max();
    let scale = Scale::from_zero(total.unwrap_or(0) as f64, Unit::Bytes);
    chart.y = Axis { title: "bytes".to_owned(), scale, unit: Unit::Bytes };
    chart.stacked = true;
    chart
}

fn network(own: &[&ResourceRow], rows: &[SeriesRow]) -> Chart {
    let mut names: Vec<&str> = Vec::new();
    for interface in own.iter().flat_map(|row| &row.host.interfaces) {
        let busy = interface.rx_bytes_per_s + interface.tx_bytes_per_s > 0.0;
        if busy && !names.contains(&interface.name.as_str()) {
            names.push(&interface.name);
        }
    }
    let mut figures = Vec::new();
    for name in names {
        let of = move |row: &HostRow, pick: fn(&tacho_monitor::InterfaceRates) -> f64| {
            row.interfaces.iter().find(|interface| interface.name == name).map(pick)
        };
        let received = move |row: &HostRow| of(row, |rates| rates.rx_bytes_per_s);
        let sent = move |row: &HostRow| of(row, |rates| rates.tx_bytes_per_s);
        figures.push(figure(&format!("{name} received"), received));
        figures.push(figure(&format!("{name} transmitted"), sent));
    }
    panel(own, rows, "Network usage", ("bytes per second", Unit::BytesPerS), &figures)
}

fn load(own: &[&ResourceRow], rows: &[SeriesRow]) -> Chart {
    let figures = [
        figure("1 min", |row| row.load.map(|load| load[0])),
        figure("5 min", |row| row.load.map(|load| load[1])),
        figure("15 min", |row| row.load.map(|load| load[2])),
    ];
    panel(own, rows, "CPU load", ("runnable tasks", Unit::Number), &figures)
}

/// Trouble of the network, shown only where there is some.
fn trouble(own: &[&ResourceRow], rows: &[SeriesRow]) -> Chart {
    let drops = |row: &HostRow| {
        let per_interface = row
            .interfaces
            .iter()
            .filter_map(|rates| Some(rates.rx_drops_per_s? + rates.tx_drops_per_s?));
        per_interface.reduce(|a, b| a + b)
    };
    let figures = [
        figure("segments sent again", |row| row.tcp.retransmits_per_s),
        figure("accept queue full", |row| row.tcp.listen_overflows_per_s),
        figure("packets dropped", drops),
    ];
    let mut chart =
        panel(own, rows, "Network trouble", ("events per second", Unit::Rate), &figures);
    if chart.lines.iter().all(Line::is_zero) {
        chart.lines.clear();
    }
    chart
}

/// Waiting for resources, shown only where there is some.
fn pressure(own: &[&ResourceRow], rows: &[SeriesRow]) -> Chart {
    let figures = [
        figure("for a core", |row| row.pressure.and_then(|pressure| pressure.cpu_some)),
        figure("for a disk", |row| row.pressure.and_then(|pressure| pressure.io_some)),
        figure("for memory", |row| row.pressure.and_then(|pressure| pressure.memory_some)),
    ];
    let mut chart =
        panel(own, rows, "Tasks that waited", ("percent of the time", Unit::Percent), &figures);
    if chart.lines.iter().all(Line::is_zero) {
        chart.lines.clear();
    }
    chart
}
