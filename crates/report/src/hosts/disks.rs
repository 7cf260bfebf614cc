//! Panels of a host's disks: traffic, operations, share of the time busy, waits, space.

use tacho_monitor::{DiskRates, FileSystemBytes, HostRow};
use tacho_record::{ResourceRow, SeriesRow};

use super::{HostFigure, figure, panel};
use crate::axis::Unit;
use crate::chart::Chart;
use crate::lang::Lang;

/// Disks and file systems in a panel; a reader cannot tell more lines apart.
const LINES_MAX: usize = 6;

/// A figure of a disk.
type DiskFigure = fn(&DiskRates) -> Option<f64>;

/// Panels of the disks that did anything, and of the space of all file systems.
pub(super) fn panels(lang: Lang, own: &[&ResourceRow], rows: &[SeriesRow]) -> Vec<Chart> {
    let names = busiest(own);
    let chart =
        |title, axis, figures: Vec<HostFigure<'_>>| panel(lang, own, rows, title, axis, &figures);
    let of = |pick: DiskFigure| names.iter().map(|name| disk(name, name, pick)).collect::<Vec<_>>();
    let both = |read: DiskFigure, written: DiskFigure| both_ways(lang, &names, read, written);
    let traffic = both(|disk| Some(disk.read_bytes_per_s), |disk| Some(disk.written_bytes_per_s));
    let operations = both(|disk| Some(disk.reads_per_s), |disk| Some(disk.writes_per_s));
    let waits = both(|disk| disk.read_wait_us, |disk| disk.write_wait_us);
    vec![
        chart(lang.disk_traffic(), (lang.bytes_per_second(), Unit::BytesPerS), traffic),
        chart(lang.disk_operations(), (lang.operations_per_second(), Unit::Rate), operations),
        chart(
            lang.disk_busy(),
            (lang.percent_of_the_time(), Unit::Percent),
            of(|disk| disk.busy_percent),
        ),
        chart(lang.disk_waits(), (lang.mean_of_an_operation(), Unit::Latency), waits),
        chart(lang.disk_space(), (lang.percent_used(), Unit::Percent), space(own)),
    ]
}

/// Two lines for each disk.
fn both_ways<'n>(
    lang: Lang,
    names: &'n [&str],
    read: DiskFigure,
    written: DiskFigure,
) -> Vec<HostFigure<'n>> {
    let mut figures = Vec::with_capacity(2 * names.len());
    for name in names {
        figures.push(disk(name, &lang.disk_read(name), read));
        figures.push(disk(name, &lang.disk_written(name), written));
    }
    figures
}

fn disk<'a>(device: &'a str, line: &str, pick: DiskFigure) -> HostFigure<'a> {
    figure(line, move |row: &HostRow| {
        row.disks.iter().find(|disk| disk.name == device).and_then(pick)
    })
}

/// The disks that moved most bytes, of those that moved any.
fn busiest<'r>(own: &[&'r ResourceRow]) -> Vec<&'r str> {
    let mut moved: Vec<(&str, f64)> = Vec::new();
    for disk in own.iter().flat_map(|row| &row.host.disks) {
        let bytes = disk.read_bytes_per_s + disk.written_bytes_per_s;
        match moved.iter_mut().find(|(name, _)| *name == disk.name) {
            Some((_, sum)) => *sum += bytes,
            None => moved.push((&disk.name, bytes)),
        }
    }
    moved.retain(|(_, bytes)| *bytes > 0.0);
    moved.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    moved.into_iter().map(|(name, _)| name).take(LINES_MAX).collect()
}

fn space<'r>(own: &[&'r ResourceRow]) -> Vec<HostFigure<'r>> {
    let mut points: Vec<&str> = Vec::new();
    for system in own.iter().flat_map(|row| &row.host.file_systems) {
        if !points.contains(&system.mount_point.as_str()) && points.len() < LINES_MAX {
            points.push(&system.mount_point);
        }
    }
    let used = |point: &'r str| {
        figure(point, move |row: &HostRow| {
            let known = row.file_systems.iter().find(|system| system.mount_point == point);
            known.map(FileSystemBytes::percent)
        })
    };
    points.into_iter().map(used).collect()
}
