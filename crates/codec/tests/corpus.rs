//! Replays the corpus of the fuzz targets: the seeds and the inputs found since.

#![allow(clippy::unwrap_used, reason = "a panic fails the test, as it should")]

use std::fs;
use std::path::Path;

use tacho_codec::{Direction, Version, split_frame};

/// The files of a target: (name, content).
fn corpus(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut files: Vec<_> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| {
            let path = entry.unwrap().path();
            (path.display().to_string(), fs::read(&path).unwrap())
        })
        .collect();
    files.sort();
    files
}

fn replay(target: &str, direction: Direction) {
    let files = corpus(target);
    assert!(files.len() > 50, "the corpus of {target} is complete");
    let mut legal = 0;
    for (_, content) in &files {
        let (&level, bytes) = content.split_first().unwrap();
        let version = match level {
            3 => Version::V31,
            4 => Version::V311,
            _ => Version::V5,
        };
        legal += usize::from(tacho_testkit::packets::decode_is_stable(bytes, version, direction));
    }
    assert!(legal > 20 && legal < files.len(), "{legal} of {} are legal", files.len());
}

#[test]
fn packets_to_the_server() {
    replay("decode_to_server", Direction::ToServer);
}

#[test]
fn packets_to_the_client() {
    replay("decode_to_client", Direction::ToClient);
}

#[test]
fn streams() {
    let files = corpus("split_stream");
    assert!(files.len() > 10);
    for (name, content) in files {
        let stream = &content[1..];
        let mut start = 0;
        while let Ok(Some(frame)) = split_frame(&stream[start..], 4096) {
            start += frame.total_len;
        }
        assert!(start > 0, "{name} starts with a packet");
    }
}
