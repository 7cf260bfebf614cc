//! A WebSocket from a peer that sends anything: cuts do not change what the other side understands.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tacho_testkit::fuzz::websocket::check(data));
