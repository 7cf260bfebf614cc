//! Grafana's dashboards and rules: every query is asked for real and has an answer.

mod board;
mod chain;
mod in_influxdb;
mod in_prometheus;
mod types;

use std::env;
use std::path::Path;

use libtest_mimic::Trial;

use crate::process::Peer;
use crate::trial;

pub(crate) fn register(trials: &mut Vec<Trial>) {
    let name = "every_query_for_prometheus_has_series".to_owned();
    trials.push(trial(name, &[Peer::Prometheus], in_prometheus::all_have_series));
    let name = "every_query_for_influxdb_has_series".to_owned();
    trials.push(trial(name, &[Peer::InfluxDb], in_influxdb::all_have_series));
    let name = "the_guides_chain_works_and_agrees".to_owned();
    trials.push(trial(name, &[Peer::Collectd, Peer::InfluxDb, Peer::Curl], chain::works));
    if let Some(path) = env::var_os("TACHO_GUIDE_DASHBOARD") {
        let name = "the_guides_queries_are_those_of_its_dashboard".to_owned();
        trials.push(trial(name, &[], move || chain::guides_queries(Path::new(&path))));
    }
    let name = "promtool_accepts_the_rules".to_owned();
    trials.push(trial(name, &[Peer::Promtool], in_prometheus::rules));
    let name = "dashboards_are_of_grafanas_types".to_owned();
    trials.push(trial(name, &[Peer::GrafanaSchema], types::all_are));
}
