//! Tables over many steps: with the columns of the published reports, and theirs beside ours.

use super::grid::{Cell, Grid};
use super::ladder::is_invalid;
use super::lang::Lang;
use tacho_record::{RunRecord, Series, Step, Verdict};
use tacho_scenario::VarValue;
use tacho_scenario::format::{self, latency, percent, rate, thousands};
use tacho_scenario::published::{self, GUIDE, Source};
use tacho_scenario::suite::{Misprint, published_row};

/// The verdict of a step as a reader is told.
pub(super) const fn verdict_words(lang: Lang, verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Ok => lang.ok(),
        Verdict::GeneratorBound => lang.invalid_generator_bound(),
        Verdict::Disturbed => lang.invalid_disturbed(),
        Verdict::NetworkBound => lang.invalid_network_bound(),
        Verdict::NotSustained => lang.not_sustained(),
        Verdict::NotSteady => lang.not_steady(),
        Verdict::QosViolation => lang.qos_contract_broken(),
        Verdict::LoginViolation => lang.logins_decided_wrongly(),
        Verdict::ThresholdFailed => lang.threshold_failed(),
        Verdict::Unclear => lang.unclear(),
        Verdict::Aborted => lang.aborted(),
    }
}

/// The guide's table: a row per step.
pub(super) fn guide(lang: Lang, record: &RunRecord, series: &[&Series]) -> Grid {
    let several = series.len() > 1;
    let mut heads = vec![
        lang.step(),
        "QoS",
        lang.payload(),
        lang.held(),
        lang.tps_in_out(),
        lang.in_s(),
        lang.out_s(),
        lang.achieved(),
    ];
    heads.extend(["CPU", lang.one_minus_idle(), lang.memory(), lang.avg(), "p99", lang.verdict()]);
    let mut grid = Grid::new(&heads);
    for series in series {
        if several {
            grid.heading(&series.label);
        }
        for index in &series.steps {
            let Some(step) = record.steps.get(*index) else { continue };
            grid.row(is_invalid(step), guide_row(lang, step));
        }
        published_guide(lang, &mut grid, series);
    }
    grid
}

fn guide_row(lang: Lang, step: &Step) -> Vec<Cell> {
    let ms = |value: Option<f64>| Cell::or_dash(value.map(latency));
    let short = step.achieved_percent() < tacho_record::SUSTAINED_PERCENT;
    vec![
        Cell::link(&step.label, &report_of(step)),
        Cell::or_dash(variable(step, "qos")),
        Cell::or_dash(variable(step, "payload_size").map(|bytes| format!("{bytes} B"))),
        held_by_us(lang, step),
        Cell::text(rate(step.tps)),
        Cell::text(rate(step.achieved_in_per_s)),
        Cell::text(rate(step.achieved_out_per_s)),
        Cell::text(percent(step.achieved_percent())).failed(short),
        Cell::or_dash(step.cpu_percent.map(percent)),
        Cell::or_dash(step.not_idle_percent().map(percent)),
        Cell::or_dash(step.memory_percent().map(percent)),
        ms(step.latency_us.mean),
        ms(step.latency_us.p99.map(|us| us as f64)),
        Cell::text(verdict_words(lang, step.verdict).to_owned())
            .failed(step.verdict != Verdict::Ok),
    ]
}

fn published_guide(lang: Lang, grid: &mut Grid, series: &Series) {
    let points = series.published.as_deref().into_iter().flat_map(published::guide_series);
    for point in points {
        let ms = |value: Option<f64>| Cell::or_dash(value.map(|ms| latency(ms * 1e3)));
        let name = match (point.from_table(), point.from_text()) {
            (true, _) => GUIDE.name.to_owned(),
            (_, true) => lang.read_in_text(GUIDE.name),
            _ => lang.read_from_curve(GUIDE.name),
        };
        grid.published(vec![
            Cell::text(name),
            Cell::text(point.qos.to_string()),
            Cell::text(format!("{} B", point.payload_bytes)),
            held_by(lang, &GUIDE),
            Cell::text(rate(point.tps)),
            Cell::or_dash(None),
            Cell::or_dash(None),
            Cell::or_dash(None),
            Cell::or_dash(None),
            Cell::or_dash(point.cpu_percent.map(percent)),
            Cell::or_dash(point.memory_percent.map(percent)),
            ms(point.mean_ms),
            ms(point.p99_ms),
            Cell::text(lang.published_word().to_owned()),
        ]);
    }
}

/// How long our step was held.
fn held_by_us(lang: Lang, step: &Step) -> Cell {
    Cell::or_dash((step.window_s > 0.0).then(|| lang.span(step.window_s)))
}

/// How long the rows of a report were held.
fn held_by(lang: Lang, source: &Source) -> Cell {
    Cell::text(lang.held_by(source))
}

/// Deviation from a published load beyond which a row was scaled.
const SCALED: f64 = 0.02;

/// The table of the BifroMQ report: a row per step, with connections and rates apart.
pub(super) fn bifromq(lang: Lang, steps: &[(&Series, &Step)]) -> Grid {
    let mut grid = Grid::new(&[
        lang.scenario_column(),
        "QoS",
        lang.msg_s_per_connection(),
        lang.payload(),
        lang.held(),
        lang.publishers(),
        lang.subscribers(),
        lang.connections(),
        lang.publish_s_in_all(),
        lang.deliver_s_in_all(),
        lang.avg(),
        "p99",
        lang.resident_memory(),
        "CPU",
        lang.verdict(),
    ]);
    for (series, step) in steps {
        let publishers = number(step, "publishers");
        let subscribers = number(step, "subscribers");
        let per_connection = publishers
            .filter(|count| *count > 0.0)
            .map(|count| rate(step.offered_in_per_s / count));
        let both = publishers.zip(subscribers).map(|(a, b)| whole(a + b));
        let short = step.achieved_percent() < tacho_record::SUSTAINED_PERCENT;
        let name = if step.label.is_empty() { &step.scenario } else { &step.label };
        grid.row(
            is_invalid(step),
            vec![
                Cell::link(name, &report_of(step)),
                Cell::or_dash(variable(step, "qos")),
                Cell::or_dash(per_connection),
                Cell::or_dash(variable(step, "payload_size").map(|bytes| format!("{bytes} B"))),
                held_by_us(lang, step),
                Cell::or_dash(publishers.map(whole)),
                Cell::or_dash(subscribers.map(whole)),
                Cell::or_dash(both),
                Cell::text(rate(step.achieved_in_per_s)).failed(short),
                Cell::text(rate(step.achieved_out_per_s)),
                Cell::or_dash(step.latency_us.mean.map(latency)),
                Cell::or_dash(step.latency_us.p99.map(|us| latency(us as f64))),
                Cell::or_dash(step.broker_rss_bytes.map(format::bytes)),
                Cell::or_dash(step.cpu_percent.map(percent)),
                Cell::text(verdict_words(lang, step.verdict).to_owned())
                    .failed(step.verdict != Verdict::Ok),
            ],
        );
        published_bifromq(lang, &mut grid, series, step);
    }
    grid
}

fn published_bifromq(lang: Lang, grid: &mut Grid, series: &Series, step: &Step) {
    let name = series.published.as_deref().unwrap_or(&step.scenario);
    let Some(row) = published_row(name) else { return };
    let factor = step.offered_in_per_s / (f64::from(row.publishers) * row.per_publisher_per_s);
    let clients = number(step, "publishers").filter(|count| *count > 0.0);
    let clients = clients.map_or(factor, |count| count / f64::from(row.publishers));
    // A row that was run smaller or larger: rates grow with the load, latency and CPU do not.
    let differs = |factor: f64| (factor - 1.0).abs() > SCALED;
    let is_scaled = factor > 0.0 && (differs(factor) || differs(clients));
    let (name, factor) = match is_scaled {
        true => (format!("{} × {}", published::BIFROMQ.name, short(factor)), factor),
        false => (published::BIFROMQ.name.to_owned(), 1.0),
    };
    let clients = if is_scaled { clients } else { 1.0 };
    let count = |count: u32| Cell::text(whole(f64::from(count) * clients));
    let unscaled = |text: String| Cell::or_dash((!is_scaled).then_some(text));
    grid.published(vec![
        Cell::text(name),
        Cell::text(row.qos.to_string()),
        Cell::text(rate(row.per_publisher_per_s * factor / clients)),
        Cell::text(format!("{} B", row.payload_bytes)),
        held_by(lang, &published::BIFROMQ),
        count(row.publishers),
        count(row.subscribers),
        count(row.publishers + row.subscribers),
        Cell::text(rate(row.in_per_s * factor)),
        Cell::text(rate(row.out_per_s * factor)),
        unscaled(latency(row.mean_ms * 1e3)),
        unscaled(latency(row.p99_ms * 1e3)),
        Cell::or_dash(None),
        unscaled(percent(row.cpu_percent)),
        Cell::text(lang.published_word().to_owned()),
    ]);
}

/// What is misprinted about rows of these names, or about names that are rows.
pub(super) fn misprints<'a>(lang: Lang, names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let found = names.filter_map(|name| Misprint::of(name).or_else(|| Misprint::of_row(name)));
    let mut notes: Vec<String> = found.map(|misprint| lang.misprint(misprint)).collect();
    notes.dedup();
    notes
}

/// A factor with three digits at most.
fn short(factor: f64) -> String {
    let text = format!("{factor:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The report of a step's own run, relative to the page; empty without one.
pub(super) fn report_of(step: &Step) -> String {
    let directory = step.directory.trim_matches('/');
    // Only what lies below this page: a record may come from anywhere.
    let below = !directory.is_empty()
        && !directory.contains([':', '\\'])
        && directory.split('/').all(|part| !part.is_empty() && part != "..");
    if below { format!("{directory}/report.html") } else { String::new() }
}

fn whole(value: f64) -> String {
    thousands(value.round() as u64)
}

fn variable(step: &Step, name: &str) -> Option<String> {
    step.vars.get(name).map(ToString::to_string)
}

fn number(step: &Step, name: &str) -> Option<f64> {
    match step.vars.get(name)? {
        VarValue::Integer(value) => Some(*value as f64),
        VarValue::Float(value) => Some(*value),
        VarValue::Text(text) => text.parse().ok(),
        VarValue::Boolean(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row of the BifroMQ report with its published one, as text without tags.
    fn row(publishers: i64, offered_in_per_s: f64) -> String {
        let name = "1k_1k_qos1_p1024_50mps";
        let count = VarValue::Integer(publishers);
        let vars = [("publishers", count.clone()), ("subscribers", count)];
        let step = Step {
            offered_in_per_s,
            vars: vars.map(|(name, value)| (name.to_owned(), value)).into(),
            ..Step::default()
        };
        let series = Series { published: Some(name.to_owned()), ..Series::default() };
        let mut html = String::new();
        bifromq(Lang::En, &[(&series, &step)]).render(&mut html);
        html.split("class=\"published\"").nth(1).expect("a published row").to_owned()
    }

    #[test]
    fn a_scaled_row_is_compared_with_what_scales() {
        let published = published::bifromq_row("1k_1k_qos1_p1024_50mps").expect("a row");
        let (mean, cpu) = (latency(published.mean_ms * 1e3), percent(published.cpu_percent));
        let whole = row(1000, 50_000.0);
        assert!(whole.contains(&mean) && whole.contains(&cpu), "{whole}");
        let tenth = row(100, 5000.0);
        for shown in ["BifroMQ report × 0.1<", ">50.0<", ">100<", ">200<"] {
            assert!(tenth.contains(shown), "{shown}: {tenth}");
        }
        assert!(tenth.contains(&format!(">{}<", rate(published.in_per_s / 10.0))), "{tenth}");
        assert!(!tenth.contains(&mean) && !tenth.contains(&cpu), "{tenth}");
    }

    #[test]
    fn published_figures_say_how_long_they_were_held() {
        let series = Series {
            published: Some("symmetric-qos1".to_owned()),
            variable: Some("target_throughput".to_owned()),
            steps: vec![0],
            ..Series::default()
        };
        let steps = vec![Step { window_s: 15.0, ..Step::default() }];
        let record = RunRecord { steps, ..RunRecord::default() };
        let mut html = String::new();
        guide(Lang::En, &record, &[&series]).render(&mut html);
        let (ours, theirs) = html.split_once("class=\"published\"").expect("both");
        assert!(ours.contains("<td>15 s</td>"), "{ours}");
        assert_eq!(theirs.matches("<td>5 min</td>").count(), 6, "{theirs}");
        // A sentence of the guide is marked as such.
        assert!(theirs.contains("EMQX guide, text</th>"), "{theirs}");
        assert!(row(1000, 50_000.0).contains("<td>not stated</td>"));
    }

    #[test]
    fn a_misprinted_row_is_explained() {
        let notes = misprints(Lang::En, ["1.2k_1.2k_qos2_p32_50mps", "symmetric"].into_iter());
        let words = "prints 1.2k_1.2k_qos2_p32_100mps as 1.2k_1.2k_qos2_p32_50mps; its columns say \
                     100 messages/s of each publisher and 120,000 in all";
        assert!(notes.len() == 1 && notes[0].contains(words), "{notes:?}");
        let row = ["true_1.2k_1.2k_qos2_p32_100mps"];
        assert_eq!(misprints(Lang::En, row.into_iter()), notes);
    }

    #[test]
    fn links_stay_below_the_page() {
        let of = |directory: &str| {
            report_of(&Step { directory: directory.to_owned(), ..Step::default() })
        };
        assert_eq!(of("steps/01-a"), "steps/01-a/report.html");
        for outside in ["", "../x", "javascript:alert(1)", "https://a/b", "a//b", "a/../../b"] {
            assert_eq!(of(outside), "", "{outside}");
        }
    }
}
