//! A stream in one piece and in many pieces must give the same frames.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tacho_codec::split_frame;

/// Splits a stream that arrives `step` bytes at a time.
fn frames(stream: &[u8], step: usize) -> (Vec<&[u8]>, bool) {
    let (mut start, mut end) = (0, 0);
    let mut frames = Vec::new();
    loop {
        match split_frame(&stream[start..end], 4096) {
            Ok(Some(frame)) => {
                assert!(frame.total_len >= 2 && frame.total_len <= 4096);
                frames.push(&stream[start..start + frame.total_len]);
                start += frame.total_len;
            }
            Ok(None) if end == stream.len() => return (frames, false),
            Ok(None) => end = stream.len().min(end + step),
            Err(_) => return (frames, true),
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&step, stream)) = data.split_first() else { return };
    let whole = frames(stream, stream.len().max(1));
    assert_eq!(frames(stream, usize::from(step).max(1)), whole);
    assert_eq!(frames(stream, 1), whole);
});
