//! Panels of each of several brokers, wherever they run: what its clients sent and got, what its
//! process spent, what its bridges passed on.

use super::axis::Unit;
use super::chart::{Chart, Line};
use super::lang::Lang;
use super::over_time::{float, line_of, log_over_time, over_time};
use tacho_record::{BrokerRow, PartRow, SeriesRow};

/// The panels of one broker.
#[derive(Debug)]
pub(super) struct BrokerPanels {
    pub(super) name: String,
    pub(super) charts: Vec<Chart>,
}

type PartPick = fn(&PartRow) -> Option<f64>;

/// Common parts of a broker's charts.
struct Of<'a> {
    lang: Lang,
    own: Vec<&'a BrokerRow>,
    rows: &'a [SeriesRow],
}

/// The names of the brokers, in the order of the run.
fn names(brokers: &[BrokerRow]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for row in brokers {
        if !names.contains(&row.part.name.as_str()) {
            names.push(&row.part.name);
        }
    }
    names
}

fn own<'a>(brokers: &'a [BrokerRow], name: &str) -> Vec<&'a BrokerRow> {
    brokers.iter().filter(|row| row.part.name == name).collect()
}

/// Panels of all brokers; none without several.
pub(super) fn panels(lang: Lang, brokers: &[BrokerRow], rows: &[SeriesRow]) -> Vec<BrokerPanels> {
    let panels = |name: &str| {
        let of = Of { lang, own: own(brokers, name), rows };
        BrokerPanels { name: shown(lang, name).to_owned(), charts: of.charts() }
    };
    names(brokers).into_iter().map(panels).collect()
}

fn shown(lang: Lang, name: &str) -> &str {
    if name.is_empty() { lang.default_broker() } else { name }
}

/// A line per broker.
pub(super) fn side_by_side(lang: Lang, brokers: &[BrokerRow], pick: PartPick) -> Vec<Line> {
    let named = names(brokers).into_iter().enumerate();
    let lines = named.map(|(index, name)| {
        // The generator's colour is the third.
        let colour = [1, 2, 4, 5, 6, 7, 8][index % 7];
        line(&own(brokers, name), shown(lang, name), colour, pick)
    });
    lines.filter(|line| !line.is_empty()).collect()
}

fn line(own: &[&BrokerRow], name: &str, colour: usize, pick: PartPick) -> Line {
    let values = own.iter().map(|row| (row.start_s, row.length_s, pick(&row.part)));
    line_of(name, colour, values)
}

impl Of<'_> {
    fn charts(&self) -> Vec<Chart> {
        let mut charts = vec![
            self.messages(),
            self.cpu(),
            self.memory(),
            self.round_trip(),
            self.clients(),
            self.waiting(),
        ];
        charts.retain(|chart| !chart.is_empty());
        charts
    }

    fn chart(&self, title: &str, y: (&str, Unit), lines: &[(&str, usize, PartPick)]) -> Chart {
        let lines = lines
            .iter()
            .map(|(name, colour, pick)| line(&self.own, name, *colour, *pick))
            .filter(|line| !line.is_empty());
        over_time(self.lang, self.rows, title, y.0, y.1, lines.collect())
    }

    fn messages(&self) -> Chart {
        let lang = self.lang;
        let mut chart = self.chart(
            lang.messages_of_the_broker(),
            (lang.messages_per_second(), Unit::Rate),
            &[
                (lang.sent_by_clients(), 1, |part| Some(part.sent_per_s)),
                (lang.to_clients(), 3, |part| Some(part.received_per_s)),
                (lang.sent_by_bridges_of_others(), 5, |part| part.spent.bridged_in_per_s),
                (lang.to_bridges(), 2, |part| part.spent.bridged_out_per_s),
            ],
        );
        if chart.lines.len() > 2 {
            lang.what_bridged_messages_are().clone_into(&mut chart.note);
        }
        chart
    }

    fn cpu(&self) -> Chart {
        let lang = self.lang;
        self.chart(
            lang.cpu_of_the_broker(),
            (lang.percent_one_core_100(), Unit::Percent),
            &[
                (lang.broker_process(), 1, |part| part.spent.cpu_percent),
                (lang.brokers_cores_busy(), 2, |part| part.spent.cores_busy_percent),
            ],
        )
    }

    fn memory(&self) -> Chart {
        let lang = self.lang;
        self.chart(
            lang.memory_of_the_broker(),
            (lang.bytes(), Unit::Bytes),
            &[(lang.broker_rss(), 1, |part| float(part.spent.rss_bytes))],
        )
    }

    fn round_trip(&self) -> Chart {
        let lang = self.lang;
        let p50 = line(&self.own, lang.round_trip_p50(), 3, |part| float(part.rtt_p50_us));
        log_over_time(lang, self.rows, lang.round_trip_to_the_broker(), vec![p50])
    }

    fn clients(&self) -> Chart {
        let lang = self.lang;
        self.chart(
            lang.connections_of_the_broker(),
            (lang.connections(), Unit::Number),
            &[
                (lang.clients(), 1, |part| Some(part.connected as f64)),
                (lang.of_its_bridges(), 2, |part| float(part.spent.bridge_connections_up)),
            ],
        )
    }

    fn waiting(&self) -> Chart {
        let lang = self.lang;
        self.chart(
            lang.messages_that_wait_in_bridges(),
            (lang.messages(), Unit::Number),
            &[(lang.waiting_or_in_flight(), 2, |part| float(part.spent.bridge_waiting))],
        )
    }
}
