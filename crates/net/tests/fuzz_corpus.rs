//! The body of the fuzz target `websocket`, over its corpus and mutations of it.

use tacho_testkit::fuzz::{replay, websocket};

#[test]
fn websocket_inputs_keep_the_properties_of_the_target() {
    replay("websocket", &[], websocket::check);
}
