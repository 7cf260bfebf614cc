//! An `emqx.conf` with any content: its bridges are translated or refused.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tacho_testkit::fuzz::emqx::check(data));
