//! The document about the EMQX guide's tests.

use std::fmt::Write as _;

use super::curve::{self, Curve};
use super::picture::{self, Entry};
use super::record::{Broker, Results, Row};
use super::{Documents, nearest, sheet};
use tacho_report::Lang;
use tacho_report::axis::{Scale, Unit};
use tacho_report::chart::{Axis, Chart, Line, Mark, Marker, Style, logarithmic};
use tacho_scenario::format;
use tacho_scenario::published::{self, GUIDE, GuidePoint};

/// A test of the guide.
struct Test {
    /// Name of the series, and of its picture.
    series: &'static str,
    title: &'static str,
    published: &'static str,
    /// What it does.
    text: &'static str,
}

const TESTS: [Test; 7] = [
    Test {
        series: "qos0",
        title: "Symmetric, QoS 0",
        published: "symmetric-qos0",
        text: "1,000 publishers to 1,000 subscribers, one to one, 128 bytes.",
    },
    Test {
        series: "qos1",
        title: "Symmetric, QoS 1",
        published: "symmetric-qos1",
        text: "The same at QoS 1.",
    },
    Test {
        series: "qos2",
        title: "Symmetric, QoS 2",
        published: "symmetric-qos2",
        text: "The same at QoS 2.",
    },
    Test {
        series: "payload",
        title: "Growing payloads, QoS 1, 40K TPS",
        published: "symmetric-payload",
        text: "1,000 pairs, 20,000 messages per second in, 128 bytes to 8 KiB.",
    },
    Test {
        series: "fan-in",
        title: "Fan-in, QoS 1",
        published: "fan-in",
        text: "2,000 publishers; each hundred of them send to five subscribers that share one \
               subscription.",
    },
    Test {
        series: "fan-out",
        title: "Fan-out, QoS 1",
        published: "fan-out",
        text: "10 publishers, 2,000 subscribers: every message goes to 200 of them.",
    },
    Test {
        series: "bridge",
        title: "Bridge, QoS 1",
        published: "bridge",
        text: "Two brokers, bridged in both directions; 500 publishers at each send to 500 \
               subscribers at the other. TPS per broker, in and out, the bridge's legs included; \
               CPU of the busier broker. Here both share one core, where the guide's had a host \
               each, so that 50 % each is all there is.",
    },
];

const BOTTLENECK: &str = "**The bottleneck**: \"generator\" in the list of all runs means \
                          that the generator's core was full before the broker's; the recommended \
                          workload is then a bound, \"more than\".";

/// Writes it.
pub(super) fn documents(results: &Results) -> Documents {
    let mut text = "# The EMQX guide's tests, with several brokers\n\n".to_owned();
    let _ = writeln!(
        text,
        "Written by `cargo xtask results` from a record; not edited by hand. The workloads are those of \
         a published guide that measured {}. Its brokers had {} cores, ours have one.\n",
        GUIDE.hardware, GUIDE.cores
    );
    let held = sheet::held(results, &GUIDE);
    let _ = writeln!(text, "## Recommended workload\n\n{RECOMMENDED_TEXT} Each step: {held}.\n");
    text.push_str(&recommended(results));
    text.push('\n');
    text.push_str(&sheet::conditions(results, &GUIDE, BOTTLENECK));
    text.push('\n');
    text.push_str(&sheet::brokers(results, false));
    let mut files = Vec::new();
    for test in &TESTS {
        let picture = format!("{}.svg", test.series);
        let _ = writeln!(text, "\n## {}\n\n{}\n", test.title, test.text);
        if results.rows.iter().any(|row| row.series == test.series && row.step.is_some()) {
            let _ = writeln!(text, "![{}]({picture})\n", test.title);
            files.push((picture, graphs(results, test)));
        }
        text.push_str(&table(results, test));
        text.push_str(&nearest::table(results, test.series, test.published));
    }
    text.push('\n');
    text.push_str(&sheet::all_rows(results, &order(results)));
    text.push_str(&sheet::left_out(results));
    text.push_str(&sheet::record(results));
    files.insert(0, ("README.md".to_owned(), text));
    Documents { files, summary: summary(results) }
}

const RECOMMENDED_TEXT: &str = "The load, messages in + out per second, at which mean CPU reaches 75 %: interpolated between \
     the neighbouring steps, as the guide does. Where the ladder ended before, it is a bound. \
     \"Probably\" also takes steps that do not count because the generator was late (p99 of 1 to \
     10 ms) or its core full, but of which the broker carried at least 99 %: what comes late comes \
     in bursts, which cost a broker less per message.";

/// What stands in the README of the repository.
fn summary(results: &Results) -> String {
    let machine = &results.machine;
    format!(
        "Messages in + out per second at which the broker's CPU reaches 75 %, by the EMQX guide's \
         tests. Ours: one core of {} for the broker{}, one for the generator, loopback; \
         published: {}. Each step: {}.\n\n{}\n\
         ![CPU and latency over throughput](docs/results/guide/qos1.svg)\n\n\
         [All graphs, tables and conditions](docs/results/guide/README.md)\n",
        machine.cpu,
        if machine.virtualised { " (a virtual machine)" } else { "" },
        GUIDE.hardware,
        sheet::held(results, &GUIDE),
        recommended(results)
    )
}

fn recommended(results: &Results) -> String {
    let mut out = format!("| test | {} ({} cores) |", GUIDE.name, GUIDE.cores);
    results.brokers.iter().for_each(|broker| out.push_str(&format!(" {} (1 core) |", broker.name)));
    out.push_str("\n|---|---|");
    out.push_str(&"---|".repeat(results.brokers.len()));
    out.push('\n');
    for load in published::guide_recommended() {
        let Some(test) = TESTS.iter().find(|test| test.published == load.series) else { continue };
        let _ = write!(out, "| {} | {} |", test.title, format::rate(load.tps));
        for broker in &results.brokers {
            let curve = Curve::of(results, &broker.key, test.series);
            let cell = match (curve.rows.is_empty(), test.series) {
                (true, series) => results.absence(&broker.key, series).to_owned(),
                // 75 % of a core of its own is more than the half that each has here.
                (false, "bridge") => curve.most_carried(),
                (false, _) => curve.recommended(),
            };
            let _ = write!(out, " {cell} |");
        }
        out.push('\n');
    }
    out
}

/// The rows of a test, and the related series.
fn curve_of<'a>(results: &'a Results, broker: &Broker, test: &Test) -> Curve<'a> {
    let mut curve = Curve::of(results, &broker.key, test.series);
    if test.series == "payload" {
        // 128 bytes at this rate are a step of the ladder.
        curve.rows.splice(0..0, results.row(&broker.key, "qos1", "40K"));
    }
    curve
}

fn x_of(test: &Test) -> fn(&Row) -> Option<f64> {
    match test.series {
        "payload" => |row: &Row| match row.series.as_str() {
            "payload" => Some(curve::nominal(&row.label) as f64),
            _ => Some(128.0),
        },
        _ => curve::tps,
    }
}

fn graphs(results: &Results, test: &Test) -> String {
    let with_payload = test.series == "payload";
    let drawn = published::guide_series(test.published).filter(|point| !point.from_text());
    let points: Vec<&GuidePoint> = drawn.collect();
    let theirs = |pick: fn(&GuidePoint) -> Option<f64>| Line {
        name: GUIDE.name.to_owned(),
        style: Style::Reference,
        marker: Marker::Dot,
        points: points
            .iter()
            .filter_map(|point| {
                let x = if with_payload { f64::from(point.payload_bytes) } else { point.tps };
                Some((x, Some(pick(point)?)))
            })
            .collect(),
        ..Line::default()
    };
    let ours = |pick: fn(&Row) -> Option<f64>| -> Vec<Line> {
        let brokers = results.brokers.iter().enumerate();
        let lines = brokers.flat_map(|(index, broker)| {
            let curve = curve_of(results, broker, test);
            let (style, marker) = (Style::Plain, Marker::Dot);
            curve.lines(&broker.name, index + 1, style, marker, x_of(test), pick)
        });
        let mut lines: Vec<Line> = lines.collect();
        if test.series == "bridge" {
            lines.extend(without_bridge(results, pick));
        }
        lines
    };
    let chart = |title: &str, pick, published: Line, unit| {
        let mut lines = ours(pick);
        lines.push(published);
        lines.retain(|line| !line.points.is_empty());
        let (x, y) = axes(with_payload, unit, &lines);
        Chart::new(title, x, y, lines)
    };
    let cpu = chart("CPU", curve::cpu, theirs(|point| point.cpu_percent), Unit::Percent);
    let level = Mark { y: 75.0, x: None, name: "75 %".to_owned(), colour: 0 };
    let cpu = Chart { wide: true, marks: vec![level], ..cpu };
    let mean = chart(
        "Mean latency",
        curve::mean,
        theirs(|point| point.mean_ms.map(|ms| ms * 1e3)),
        Unit::Latency,
    );
    let p99 = chart(
        "p99 latency",
        curve::p99,
        theirs(|point| point.p99_ms.map(|ms| ms * 1e3)),
        Unit::Latency,
    );
    let ours = format!(
        "Ours: loopback, broker on one core. Published: over a network, 4 cores; CPU is each one's \
         share of its own cores. Each step: {}.",
        sheet::held(results, &GUIDE)
    );
    let notes = [
        "Dots count; circles do not (generator or machine); crosses: the broker did not carry it.",
        &ours,
    ];
    picture::charts(test.title, &legend(results, test), &[cpu, mean, p99], &notes)
}

/// The axes of a chart with these lines: the tests with payloads have another x.
fn axes(with_payload: bool, unit: Unit, lines: &[Line]) -> (Axis, Axis) {
    let xs = lines.iter().flat_map(|line| line.points.iter().map(|(x, _)| *x));
    let x_end = xs.fold(0.0, f64::max) * 1.05;
    let (x_title, x_unit) = match with_payload {
        true => ("payload (bytes)", Unit::Number),
        false => ("throughput: messages in + out per second", Unit::Rate),
    };
    let x =
        Axis { title: x_title.to_owned(), scale: Scale::exactly(0.0, x_end, x_unit), unit: x_unit };
    let y = match unit {
        Unit::Latency => logarithmic(Lang::En, "latency", unit, lines),
        _ => Axis {
            title: "CPU (percent of its cores)".to_owned(),
            scale: Scale::exactly(0.0, 100.0, unit),
            unit,
        },
    };
    (x, y)
}

/// Beside the bridge, the same broker by itself: the symmetric test at QoS 1.
fn without_bridge(results: &Results, pick: fn(&Row) -> Option<f64>) -> Vec<Line> {
    let bridged = |broker: &&(usize, &Broker)| {
        results.rows.iter().any(|row| row.broker == broker.1.key && row.series == "bridge")
    };
    let brokers: Vec<(usize, &Broker)> = results.brokers.iter().enumerate().collect();
    let lines = brokers.iter().filter(bridged).flat_map(|(index, broker)| {
        let mut curve = Curve::of(results, &broker.key, "qos1");
        // As far as bridges are measured, and a little on.
        curve.rows.retain(|row| curve::nominal(&row.label) <= 40);
        let name = format!("{}, no bridge", broker.name);
        curve.lines(&name, index + 1, Style::Dashed, Marker::None, curve::tps, pick)
    });
    lines.filter(|line| line.style == Style::Dashed).collect()
}

fn legend(results: &Results, test: &Test) -> Vec<Entry> {
    let has = |broker: &Broker| {
        results.rows.iter().any(|row| row.broker == broker.key && row.series == test.series)
    };
    let brokers = results.brokers.iter().enumerate().filter(|(_, broker)| has(broker));
    let mut legend: Vec<Entry> =
        brokers.clone().map(|(index, broker)| Entry::of(index, broker)).collect();
    if test.series == "bridge" {
        legend.extend(brokers.map(|(index, broker)| Entry {
            classes: format!("c{} dashed", index + 1),
            text: format!("{}, one broker without a bridge", broker.name),
        }));
    }
    legend.push(Entry {
        classes: "reference".to_owned(),
        text: "published: EMQX 5.1.6, 4 vCPU Xeon Platinum 8378A, over a network".to_owned(),
    });
    legend
}

/// CPU, mean and p99 of every step, published and ours.
fn table(results: &Results, test: &Test) -> String {
    let mut out = format!(
        "CPU % / mean ms / p99 ms; {}:\n\n| {} | {} ({} cores) |",
        sheet::held(results, &GUIDE),
        if test.series == "payload" { "payload" } else { "TPS" },
        GUIDE.name,
        GUIDE.cores
    );
    results.brokers.iter().for_each(|broker| out.push_str(&format!(" {} |", broker.name)));
    out.push_str("\n|---|---|");
    out.push_str(&"---|".repeat(results.brokers.len()));
    out.push('\n');
    let mut steps: Vec<(String, String)> = Vec::new();
    if test.series == "payload" {
        steps.push(("qos1".to_owned(), "40K".to_owned()));
    }
    steps.extend(
        labels(results, test.series).into_iter().map(|label| (test.series.to_owned(), label)),
    );
    for (series, label) in steps {
        let shown = match (test.series, series.as_str()) {
            ("payload", "qos1") => "128B".to_owned(),
            _ => label.clone(),
        };
        let point = published::guide_series(test.published).find(|point| match test.series {
            "payload" => u64::from(point.payload_bytes) == curve::nominal(&shown),
            _ => (point.tps / 1e3 - curve::nominal(&label) as f64).abs() < 0.5,
        });
        let theirs = point.map_or_else(String::new, |point| {
            let one = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |v| format!("{v}"));
            let text = if point.from_text() { " (text)" } else { "" };
            format!(
                "{} / {} / {}{text}",
                one(point.cpu_percent),
                one(point.mean_ms),
                one(point.p99_ms)
            )
        });
        let _ = write!(out, "| {shown} | {theirs} |");
        for broker in &results.brokers {
            let _ = write!(out, " {} |", cell(results, broker, &series, &label));
        }
        out.push('\n');
    }
    out
}

fn cell(results: &Results, broker: &Broker, series: &str, label: &str) -> String {
    let Some(row) = results.row(&broker.key, series, label) else {
        return results.reason(&broker.key, series, label).map_or("", |_| "not run").to_owned();
    };
    if row.step.is_none() {
        return sheet::linked(results, row, row.verdict.name());
    }
    let cpu = row.cpu_percent().map_or_else(|| "–".to_owned(), |cpu| format!("{cpu:.1}"));
    let figures =
        format!("{cpu} / {} / {}", sheet::ms(curve::mean(row)), sheet::ms(curve::p99(row)));
    sheet::linked(results, row, &sheet::worth(row, &figures))
}

/// The steps of a series, those left out too, in the order of their load.
fn labels(results: &Results, series: &str) -> Vec<String> {
    let ran = results.rows.iter().filter(|row| row.series == series).map(|row| &row.label);
    let left = results.left_out.iter().filter(|left| left.series == series).map(|left| &left.label);
    let mut labels: Vec<String> = ran.chain(left).cloned().collect();
    labels.sort_by_key(|label| curve::nominal(label));
    labels.dedup();
    labels
}

fn order(results: &Results) -> Vec<(String, String)> {
    let steps = TESTS.iter().flat_map(|test| {
        let labels = labels(results, test.series).into_iter();
        labels.map(|label| (test.series.to_owned(), label))
    });
    steps.collect()
}
