//! The body of the fuzz target `configuration`, over its corpus and mutations of it.

use tacho_testkit::fuzz::{configuration, replay};

#[test]
fn configuration_inputs_keep_the_properties_of_the_target() {
    replay("configuration", &[], configuration::check);
}
