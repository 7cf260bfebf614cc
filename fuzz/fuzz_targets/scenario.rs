//! A scenario file with any content: it is read, or the message says what is wrong.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tacho_testkit::fuzz::scenario::check(data));
