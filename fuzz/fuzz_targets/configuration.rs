//! A configuration file with any content: what it says can be written down and read again.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tacho_testkit::fuzz::configuration::check(data));
