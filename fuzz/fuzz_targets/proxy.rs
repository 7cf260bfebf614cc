//! The header of a proxy, from a peer that sends anything: it ends where it ends, in any pieces.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tacho_testkit::fuzz::proxy::check(data));
