//! The bodies of the fuzz targets `scenario` and `jmeter`, over corpora and mutations of them.

use tacho_testkit::fuzz::{jmeter, replay, scenario};

#[test]
fn scenario_inputs_keep_the_properties_of_the_target() {
    replay("scenario", &["crates/scenario/scenarios"], scenario::check);
}

#[test]
fn jmeter_inputs_keep_the_properties_of_the_target() {
    replay("jmeter", &["crates/scenario/tests/fixtures"], jmeter::check);
}
