//! The bodies of the fuzz targets `websocket` and `proxy`, over their corpora and mutations.

use tacho_testkit::fuzz::{proxy, replay, websocket};

#[test]
fn websocket_inputs_keep_the_properties_of_the_target() {
    replay("websocket", &[], websocket::check);
}

#[test]
fn headers_of_proxies_keep_the_properties_of_the_target() {
    replay("proxy", &[], proxy::check);
}
