//! A JMeter plan with any content: it is translated, or the message says what is wrong.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tacho_testkit::fuzz::jmeter::check(data));
