//! The document about the rows of the BifroMQ report.

use std::fmt::Write as _;

use super::curve;
use super::dots::{self, Dot, DotKind, DotRow, Panel};
use super::picture::Entry;
use super::record::{Results, Row, Worth};
use super::{Documents, sheet};
use tacho_report::Lang;
use tacho_report::axis::Unit;
use tacho_scenario::format;
use tacho_scenario::published::{self, BIFROMQ, BifromqRow};
use tacho_scenario::suite::Misprint;

/// What rows are gathered under.
const GROUPS: [(&str, Belongs); 5] = [
    ("Clean sessions", |row| row.clean_session && !row.shared && row.subscribers <= row.publishers),
    ("Fan-out", |row| row.subscribers > row.publishers),
    ("Shared subscriptions", |row| row.shared),
    ("Persistent sessions, 1 message/s each", |row| {
        !row.clean_session && !row.shared && row.per_publisher_per_s < 2.0
    }),
    ("Persistent sessions, 50 messages/s each", |row| {
        !row.clean_session && !row.shared && row.per_publisher_per_s >= 2.0
    }),
];

type Belongs = fn(&BifromqRow) -> bool;

const BOTTLENECK: &str = "**The bottleneck**: the list of all runs names the program that had no \
                          CPU left. Where it is the generator, the row does not count.";

/// Rows that the README shows.
const SHOWN: [&str; 6] = [
    "true_100_100_qos0_p1024_50mps",
    "true_100_100_qos1_p1024_50mps",
    "true_1_1k_qos1_p32_1mps",
    "false_share_5k_50_qos1_p1024_1mps",
    "false_5k_5k_qos1_p32_1mps",
    "false_300_300_qos1_p32_50mps",
];

/// Writes it.
pub(super) fn documents(results: &Results) -> Documents {
    let mut text = "# The BifroMQ report's rows, with several brokers\n\n".to_owned();
    let _ = writeln!(
        text,
        "Written by `cargo xtask results` from a record; not edited by hand. The workloads are those of \
         a published report about {}; ours is a machine with {} cores, of which the broker has \
         one. Every row that this machine can carry was run; the others are listed with what they \
         need.\n\n![p99 and CPU of every row](rows.svg)\n",
        BIFROMQ.hardware, results.machine.cores
    );
    text.push_str(&sheet::conditions(results, &BIFROMQ, BOTTLENECK));
    text.push('\n');
    text.push_str(&sheet::brokers(results, true));
    text.push_str(
        "\nWith persistent sessions brokers promise different things, and their figures are those \
         of different promises.\n",
    );
    for (title, belongs) in GROUPS {
        let rows: Vec<&BifromqRow> =
            published::bifromq().iter().filter(|row| belongs(row)).collect();
        let _ = writeln!(text, "\n## {title}\n\n{}", table(results, &rows));
    }
    text.push_str(&sheet::all_rows(results, &order()));
    text.push_str(&sheet::left_out(results));
    text.push_str(&sheet::record(results));
    let files = vec![("README.md".to_owned(), text), ("rows.svg".to_owned(), picture(results))];
    Documents { files, summary: summary(results) }
}

/// What stands in the README of the repository.
fn summary(results: &Results) -> String {
    let shown = published::bifromq().iter().filter(|row| SHOWN.contains(&row.full_name().as_str()));
    let rows: Vec<&BifromqRow> = shown.collect();
    format!(
        "Rows of the BifroMQ report: mean ms / p99 ms / cores used. Published: {}; ours: one core \
         for the broker; {}. What brokers promise for persistent sessions (`false_`) \
         differs.\n\n{}\n\
         [All rows, graphs and conditions](docs/results/bifromq/README.md)\n",
        BIFROMQ.hardware,
        sheet::held(results, &BIFROMQ),
        table_of(results, &rows, |_, text| text)
    )
}

fn table(results: &Results, rows: &[&BifromqRow]) -> String {
    let held = sheet::held(results, &BIFROMQ);
    let table = table_of(results, rows, |row, text| sheet::linked(results, row, &text));
    let mut out = format!("Mean ms / p99 ms / cores used; {held}:\n\n{table}");
    for misprint in rows.iter().filter_map(|row| Misprint::of_row(&row.full_name())) {
        let _ = writeln!(out, "\n{}.", Lang::En.misprint(misprint));
    }
    out
}

/// `lead` makes a cell lead to the record of its run.
fn table_of(
    results: &Results,
    rows: &[&BifromqRow],
    lead: impl Fn(&Row, String) -> String,
) -> String {
    let mut out = format!("| row | messages in /s | {} ({} cores) |", BIFROMQ.name, BIFROMQ.cores);
    results.brokers.iter().for_each(|broker| out.push_str(&format!(" {} |", broker.name)));
    out.push_str("\n|---|---|---|");
    out.push_str(&"---|".repeat(results.brokers.len()));
    out.push('\n');
    for row in rows {
        let offered = f64::from(row.publishers) * row.per_publisher_per_s;
        let reached = match (row.in_per_s / offered - 1.0).abs() < 0.01 {
            true => format::rate(row.in_per_s),
            false => format!("{} (of {})", format::rate(row.in_per_s), format::rate(offered)),
        };
        let name = row.full_name();
        let _ = write!(
            out,
            "| {name} | {reached} | {} / {} / {:.1} |",
            row.mean_ms,
            row.p99_ms,
            published_cores(row)
        );
        for broker in &results.brokers {
            let cell = match results.row(&broker.key, &name, &name) {
                Some(row) => lead(row, figures(row)),
                None => absence(results, &name).to_owned(),
            };
            let _ = write!(out, " {cell} |");
        }
        out.push('\n');
    }
    out
}

fn published_cores(row: &BifromqRow) -> f64 {
    row.cpu_percent / 100.0 * f64::from(BIFROMQ.cores)
}

fn cores(row: &Row) -> Option<f64> {
    row.cpu_percent().map(|percent| percent / 100.0)
}

fn absence(results: &Results, name: &str) -> &'static str {
    match results.left_out.iter().find(|left| left.label == name) {
        Some(left) if left.broker.is_empty() => "beyond this machine",
        Some(_) => "cannot",
        None => "not run",
    }
}

fn figures(row: &Row) -> String {
    if row.step.is_none() {
        return row.verdict.name().to_owned();
    }
    let cores = cores(row).map_or_else(|| "–".to_owned(), |cores| format!("{cores:.2}"));
    let figures =
        format!("{} / {} / {cores}", sheet::ms(curve::mean(row)), sheet::ms(curve::p99(row)));
    sheet::worth(row, &figures)
}

fn order() -> Vec<(String, String)> {
    let rows = GROUPS
        .iter()
        .flat_map(|(_, belongs)| published::bifromq().iter().filter(move |row| belongs(row)));
    rows.map(|row| (row.full_name(), row.full_name())).collect()
}

fn picture(results: &Results) -> String {
    let mut rows = Vec::new();
    for (title, belongs) in GROUPS {
        let ran = |row: &&BifromqRow| {
            let name = row.full_name();
            belongs(row) && results.rows.iter().any(|own| own.series == name)
        };
        let members: Vec<&BifromqRow> = published::bifromq().iter().filter(ran).collect();
        if !members.is_empty() {
            let label = title.to_owned();
            rows.push(DotRow { label, is_head: true, ..DotRow::default() });
            rows.extend(members.into_iter().map(|row| dot_row(results, row)));
        }
    }
    let brokers = results.brokers.iter().enumerate();
    let mut legend: Vec<Entry> = brokers.map(|(index, broker)| Entry::of(index, broker)).collect();
    legend.push(Entry {
        classes: "reference".to_owned(),
        text: format!(
            "published (diamonds): {}; {}",
            BIFROMQ.hardware,
            sheet::held(results, &BIFROMQ)
        ),
    });
    let panels = [
        Panel { title: "p99 latency".to_owned(), unit: Unit::Latency, factor: 1.0 },
        Panel { title: "cores used by the broker".to_owned(), unit: Unit::Number, factor: 1000.0 },
    ];
    let title = "The BifroMQ report's rows: dots count, circles do not, crosses were not carried";
    dots::picture(title, &legend, &panels, &rows)
}

fn dot_row(results: &Results, row: &BifromqRow) -> DotRow {
    let name = row.full_name();
    let published = |value: f64, text: String| Dot {
        kind: DotKind::Published,
        colour: 0,
        name: format!("{}: {text}", BIFROMQ.name),
        value,
    };
    let cores_used = published_cores(row);
    let mut panels = [
        vec![published(row.p99_ms * 1e3, format!("{} ms", row.p99_ms))],
        vec![published(cores_used, format!("{cores_used:.2} cores"))],
    ];
    for (index, broker) in results.brokers.iter().enumerate() {
        let Some(own) = results.row(&broker.key, &name, &name) else { continue };
        let kind = match own.worth() {
            Worth::Counts => DotKind::Dot,
            Worth::Invalid => DotKind::Hollow,
            Worth::NotCarried => DotKind::Cross,
        };
        let dot = |value: f64, text: String| Dot {
            kind,
            colour: index + 1,
            name: format!("{}: {text}", broker.name),
            value,
        };
        panels[0].extend(curve::p99(own).map(|us| dot(us, format::latency(us))));
        panels[1].extend(cores(own).map(|cores| dot(cores, format!("{cores:.2} cores"))));
    }
    DotRow { label: name, is_head: false, panels }
}
