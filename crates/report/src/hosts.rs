//! Panels of a watched host: CPU by state, memory, network, load, disks, each with its least, mean
//! and greatest value over the measured time.

mod disks;

use super::axis::{Scale, Unit};
use super::chart::{Axis, Chart, Line, Spread, from_zero};
use super::lang::Lang;
use super::over_time::{bands, time_axis};
use tacho_monitor::{CpuPercent, HostRow};
use tacho_record::{ResourceRow, SeriesRow};

/// The panels of one host.
#[derive(Debug)]
pub(super) struct HostPanels {
    /// Host, role and source of the figures.
    pub(super) title: String,
    pub(super) charts: Vec<Chart>,
}

type HostFigure<'a> = (String, Box<dyn Fn(&HostRow) -> Option<f64> + 'a>);

/// Panels of all hosts.
pub(super) fn panels(lang: Lang, hosts: &[ResourceRow], rows: &[SeriesRow]) -> Vec<HostPanels> {
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
            let of = target.map_or_else(String::new, |name| lang.host_of_broker(name));
            // This machine's own samples need no source.
            let is_told = !via.is_empty() && via != "local";
            let via = if is_told { lang.told_by(via) } else { String::new() };
            HostPanels { title: lang.host(host, of, via), charts: charts(lang, &own, rows) }
        })
        .collect()
}

fn identity(row: &HostRow) -> (&str, &str, Option<&str>) {
    (&row.host, &row.source, row.target.as_deref())
}

fn charts(lang: Lang, own: &[&ResourceRow], rows: &[SeriesRow]) -> Vec<Chart> {
    let mut charts = vec![
        cpu(lang, own, rows),
        memory(lang, own, rows),
        network(lang, own, rows),
        load(lang, own, rows),
    ];
    charts.extend(disks::panels(lang, own, rows));
    charts.push(trouble(lang, own, rows));
    charts.push(pressure(lang, own, rows));
    charts.retain(|chart| !chart.is_empty());
    charts
}

/// Lines of figures, and their spread over the measured windows (over everything without one).
fn lines(
    lang: Lang,
    own: &[&ResourceRow],
    rows: &[SeriesRow],
    figures: &[HostFigure<'_>],
) -> (Vec<Line>, Vec<Spread>) {
    let windows = bands(lang, rows);
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
    lang: Lang,
    own: &[&ResourceRow],
    rows: &[SeriesRow],
    title: &str,
    y: (&str, Unit),
    figures: &[HostFigure<'_>],
) -> Chart {
    let (lines, table) = lines(lang, own, rows, figures);
    let axis = from_zero(y.0, y.1, &lines);
    Chart {
        bands: bands(lang, rows),
        table,
        ..Chart::new(title, time_axis(lang, rows), axis, lines)
    }
}

fn figure<'a>(name: &str, pick: impl Fn(&HostRow) -> Option<f64> + 'a) -> HostFigure<'a> {
    (name.to_owned(), Box::new(pick))
}

fn cpu(lang: Lang, own: &[&ResourceRow], rows: &[SeriesRow]) -> Chart {
    let state = |name, pick: fn(&CpuPercent) -> f64| {
        figure(name, move |row: &HostRow| row.cpu.as_ref().map(pick))
    };
    let figures = [
        state(lang.user(), |cpu| cpu.user),
        state(lang.system(), |cpu| cpu.system),
        state(lang.softirq(), |cpu| cpu.softirq),
        state(lang.irq(), |cpu| cpu.irq),
        state(lang.nice(), |cpu| cpu.nice),
        state(lang.wait_io(), |cpu| cpu.iowait),
        state(lang.steal(), |cpu| cpu.steal),
        state(lang.idle(), |cpu| cpu.idle),
    ];
    let mut chart =
        panel(lang, own, rows, lang.cpu_usage(), (lang.percent(), Unit::Percent), &figures);
    // What is idle is the white that is left; the table has it.
    chart.lines.retain(|line| line.name != lang.idle());
    chart.y.scale = Scale::exactly(0.0, 100.0, Unit::Percent);
    chart.stacked = true;
    chart
}

fn memory(lang: Lang, own: &[&ResourceRow], rows: &[SeriesRow]) -> Chart {
    let memory = |name, pick: fn(&tacho_monitor::MemoryBytes) -> Option<u64>| {
        figure(name, move |row: &HostRow| {
            row.memory.as_ref().and_then(pick).map(|bytes| bytes as f64)
        })
    };
    let figures = [
        memory(lang.used(), |memory| Some(memory.used)),
        memory(lang.buffered(), |memory| Some(memory.buffered)),
        memory(lang.cached(), |memory| Some(memory.cached)),
        memory(lang.slab_reclaimable(), |memory| memory.slab_reclaimable),
        memory(lang.slab_not_reclaimable(), |memory| memory.slab_unreclaimable),
        memory(lang.free_memory(), |memory| Some(memory.free)),
    ];
    let mut chart =
        panel(lang, own, rows, lang.memory_usage(), (lang.bytes(), Unit::Bytes), &figures);
    chart.lines.retain(|line| line.name != lang.free_memory());
    let total = own.iter().filter_map(|row| row.host.memory.map(|memory| memory.total)).max();
    let scale = Scale::from_zero(total.unwrap_or(0) as f64, Unit::Bytes);
    chart.y = Axis { title: lang.bytes().to_owned(), scale, unit: Unit::Bytes };
    chart.stacked = true;
    chart
}

fn network(lang: Lang, own: &[&ResourceRow], rows: &[SeriesRow]) -> Chart {
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
        figures.push(figure(&lang.interface_received(name), received));
        figures.push(figure(&lang.interface_transmitted(name), sent));
    }
    panel(
        lang,
        own,
        rows,
        lang.network_usage(),
        (lang.bytes_per_second(), Unit::BytesPerS),
        &figures,
    )
}

fn load(lang: Lang, own: &[&ResourceRow], rows: &[SeriesRow]) -> Chart {
    let figures = [
        figure(lang.n_1_min(), |row| row.load.map(|load| load[0])),
        figure(lang.n_5_min(), |row| row.load.map(|load| load[1])),
        figure(lang.n_15_min(), |row| row.load.map(|load| load[2])),
    ];
    panel(lang, own, rows, lang.cpu_load(), (lang.runnable_tasks(), Unit::Number), &figures)
}

/// Trouble of the network, shown only where there is some.
fn trouble(lang: Lang, own: &[&ResourceRow], rows: &[SeriesRow]) -> Chart {
    let drops = |row: &HostRow| {
        let per_interface = row
            .interfaces
            .iter()
            .filter_map(|rates| Some(rates.rx_drops_per_s? + rates.tx_drops_per_s?));
        per_interface.reduce(|a, b| a + b)
    };
    let figures = [
        figure(lang.segments_sent_again(), |row| row.tcp.retransmits_per_s),
        figure(lang.accept_queue_full(), |row| row.tcp.listen_overflows_per_s),
        figure(lang.packets_dropped(), drops),
    ];
    let mut chart = panel(
        lang,
        own,
        rows,
        lang.network_trouble(),
        (lang.events_per_second(), Unit::Rate),
        &figures,
    );
    if chart.lines.iter().all(Line::is_zero) {
        chart.lines.clear();
    }
    chart
}

/// Waiting for resources, shown only where there is some.
fn pressure(lang: Lang, own: &[&ResourceRow], rows: &[SeriesRow]) -> Chart {
    let figures = [
        figure(lang.for_a_core(), |row| row.pressure.and_then(|pressure| pressure.cpu_some)),
        figure(lang.for_a_disk(), |row| row.pressure.and_then(|pressure| pressure.io_some)),
        figure(lang.for_memory(), |row| row.pressure.and_then(|pressure| pressure.memory_some)),
    ];
    let mut chart = panel(
        lang,
        own,
        rows,
        lang.tasks_that_waited(),
        (lang.percent_of_the_time(), Unit::Percent),
        &figures,
    );
    if chart.lines.iter().all(Line::is_zero) {
        chart.lines.clear();
    }
    chart
}
