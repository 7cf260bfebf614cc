//! Grafana's dashboards and rules: every query is asked for real and has an answer.

mod board;
mod in_prometheus;
mod types;

use libtest_mimic::Trial;

use crate::process::Peer;
use crate::trial;

pub(crate) fn register(trials: &mut Vec<Trial>) {
    let name = "every_query_for_prometheus_has_series".to_owned();
    trials.push(trial(name, &[Peer::Prometheus], in_prometheus::all_have_series));
    let name = "promtool_accepts_the_rules".to_owned();
    trials.push(trial(name, &[Peer::Promtool], in_prometheus::rules));
    let name = "dashboards_are_of_grafanas_types".to_owned();
    trials.push(trial(name, &[Peer::GrafanaSchema], types::all_are));
}
