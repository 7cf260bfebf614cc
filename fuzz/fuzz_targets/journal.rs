//! A segment file with any content: it is opened, and what it is opened as stays so.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tacho_testkit::fuzz::journal::check(data));
