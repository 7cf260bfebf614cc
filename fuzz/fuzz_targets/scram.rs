//! Messages of SCRAM with any content: answered, or refused with a sentence; no proof is guessed.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tacho_testkit::fuzz::scram::check(data));
