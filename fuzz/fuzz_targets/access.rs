//! Files of access control and tokens with any content: read, or refused with a message.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tacho_testkit::fuzz::access::check(data));
