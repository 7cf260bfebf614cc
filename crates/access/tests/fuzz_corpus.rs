//! The bodies of the fuzz targets `access` and `scram`, over their corpora and mutations.

use tacho_testkit::fuzz::{access, replay, scram};

#[test]
fn files_and_tokens_keep_the_properties_of_the_target() {
    replay("access", &[], access::check);
}

#[test]
fn messages_of_scram_keep_the_properties_of_the_target() {
    replay("scram", &[], scram::check);
}
