//! Writes the seed corpus of the fuzz targets, one file per packet of the tests' tables:
//! `cargo run -p tacho-codec --example seeds -- fuzz/corpus`.
//!
//! The first byte of a file is the version (3, 4 or 5) and the rest is the packet, as the fuzz
//! targets expect.

#![allow(clippy::unwrap_used, reason = "a tool for developers; a panic is message enough")]

use std::path::PathBuf;
use std::{env, fs};

use tacho_codec::{Direction, Version};
use tacho_testkit::{notation, vectors};

fn main() {
    let folder = PathBuf::from(env::args().nth(1).expect("the folder of the corpus"));
    let valid = vectors::CANONICAL.iter().chain(vectors::OTHER_FORMS).copied();
    let invalid =
        vectors::INVALID.iter().map(|&(version, direction, text, _)| (version, direction, text));
    let mut streams = Vec::new();
    for (index, (version, direction, text)) in valid.chain(invalid).enumerate() {
        let packet = notation::bytes(text);
        let target = match direction {
            Direction::ToServer => "decode_to_server",
            Direction::ToClient => "decode_to_client",
        };
        write(&folder, target, index, &seed(version, &packet));
        streams.push(packet);
    }
    for (index, packets) in streams.chunks(10).enumerate() {
        // This target takes the distance between cuts from the first byte.
        write(
            &folder,
            "split_stream",
            index,
            &[&[index as u8 + 1], &packets.concat()[..]].concat(),
        );
    }
}

fn seed(version: Version, packet: &[u8]) -> Vec<u8> {
    [&[version.protocol_level()], packet].concat()
}

fn write(folder: &std::path::Path, target: &str, index: usize, bytes: &[u8]) {
    let folder = folder.join(target);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(format!("seed-{index:03}")), bytes).unwrap();
}
