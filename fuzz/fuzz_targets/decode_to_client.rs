//! Packets as a client receives them.
#![no_main]

mod stable;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    stable::check(data, tacho_codec::Direction::ToClient);
});
