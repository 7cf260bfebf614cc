//! The bodies of the fuzz targets `configuration` and `emqx`, over their corpora and mutations of
//! them.

use tacho_testkit::fuzz::{configuration, emqx, replay};

#[test]
fn configuration_inputs_keep_the_properties_of_the_target() {
    replay("configuration", &[], configuration::check);
}

#[test]
fn configurations_of_emqx_keep_the_properties_of_the_target() {
    replay("emqx", &[], emqx::check);
}
