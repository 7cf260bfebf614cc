//! Suites offer the loads of the reports that they are from.

use tacho_lab::plan::{PlanOptions, plan};
use tacho_scenario::suite::Suite;
use tacho_scenario::{Adjustment, Limits, Scenario, published};

#[test]
fn the_guide_steps_are_those_of_its_published_curves() {
    for series in Suite::find("guide").expect("is there").series {
        let key = series.published.as_deref().expect("published");
        let published: Vec<_> = published::guide_series(key).collect();
        for point in &series.points {
            let vars: Vec<_> = point
                .vars
                .iter()
                .chain(&[("publishers".to_owned(), "100".to_owned())])
                .cloned()
                .collect();
            // A tenth of the clients is enough for the rates.
            let vars = if series.scenario == "symmetric" { vars } else { point.vars.clone() };
            let scenario = Scenario::load(&series.scenario, &vars, &Adjustment::NONE, Limits::NONE)
                .expect("a scenario");
            let tps = offered_tps(&scenario);
            match series.variable.as_deref() {
                Some("payload_size") => assert!((tps - 40_000.0).abs() < 1.0, "{tps}"),
                _ => assert!(
                    published.iter().any(|known| (known.tps / tps - 1.0).abs() < 0.006),
                    "{}: {tps} is not among {published:?}",
                    series.name
                ),
            }
        }
    }
}

/// In and out, per broker.
fn offered_tps(scenario: &Scenario) -> f64 {
    let targets = scenario.targets_in_use();
    let addresses = targets.iter().map(|(name, _)| {
        tacho_load::Target::tcp(std::net::SocketAddr::from(([127, 0, 0, 1], 1)), *name)
    });
    let options = PlanOptions {
        targets: addresses.collect(),
        threads: 1,
        cpus: Vec::new(),
        own_cores: false,
        run_id: 1,
    };
    let plan = plan(scenario, &options).expect("a plan");
    // Of two bridged brokers each has half of this, and as much again over the bridge.
    plan.offered_in_per_s() + plan.offered_out_per_s()
}

#[test]
fn the_bifromq_suite_offers_what_the_report_says() {
    let suite = Suite::find("bifromq").expect("is there");
    assert_eq!(suite.series.len(), 62);
    for row in published::bifromq().iter().filter(|row| row.publishers <= 1000) {
        let none = Adjustment::NONE;
        let scenario =
            Scenario::load(&row.full_name(), &[], &none, Limits::NONE).expect("a scenario");
        let offered = f64::from(row.publishers) * row.per_publisher_per_s;
        let out = if row.subscribers > row.publishers && !row.shared {
            offered * f64::from(row.subscribers / row.publishers)
        } else {
            offered
        };
        assert!((offered_tps(&scenario) - offered - out).abs() < 1e-6, "{}", row.scenario);
    }
}
