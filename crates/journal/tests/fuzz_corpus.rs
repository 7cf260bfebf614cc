//! The body of the fuzz target `journal`, over its corpus and mutations of it.

use tacho_testkit::fuzz::{journal, replay};

#[test]
fn journal_inputs_keep_the_properties_of_the_target() {
    replay("journal", &["crates/journal/tests/content/formats"], journal::check);
}
