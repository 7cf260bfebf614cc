//! The body of the fuzz target `access`, over its corpus and mutations of it.

use tacho_testkit::fuzz::{access, replay};

#[test]
fn files_and_tokens_keep_the_properties_of_the_target() {
    replay("access", &[], access::check);
}
