//! The bodies of fuzz targets, which `fuzz/` gives to the fuzzer.
//!
//! [`replay`] runs them without it: over its corpus, then over mutations of it.
//!
//! What it lacks is the fuzzer's feedback: it does not know which input reached new code. In
//! exchange it needs no other compiler, so that every ordinary test run does some of it.
//! `TACHO_FUZZ_SECONDS=n` goes on for so long, `TACHO_FUZZ_SEED=n` makes other mutations.

#[cfg(feature = "access")]
pub mod access;
#[cfg(feature = "broker")]
pub mod configuration;
#[cfg(feature = "broker")]
pub mod emqx;
#[cfg(feature = "scenario")]
pub mod jmeter;
#[cfg(feature = "journal")]
pub mod journal;
#[cfg(feature = "net")]
pub mod proxy;
#[cfg(feature = "scenario")]
pub mod scenario;
#[cfg(feature = "access")]
pub mod scram;
#[cfg(feature = "net")]
pub mod websocket;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{env, fs};

use crate::rng::Rng;

/// Mutations in an ordinary test run.
const MUTATIONS: u64 = 2_000;
/// Longer inputs are cut off.
const INPUT_BYTES_MAX: usize = 32 << 10;
/// Bytes that lie at the edges of what numbers and lengths may be.
const EDGES: [u8; 12] = [0, 1, 0x7d, 0x7e, 0x7f, 0x80, 0x81, 0xfe, 0xff, b'"', b'{', b'\n'];

/// Replays `fuzz/corpus/TARGET`, and the files in `further` folders below the repository's root;
/// then their mutations.
pub fn replay(target: &str, further: &[&str], body: fn(&[u8])) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut inputs = inputs(&root.join("fuzz/corpus").join(target));
    assert!(!inputs.is_empty(), "fuzz/corpus/{target} is empty");
    inputs.extend(further.iter().flat_map(|folder| self::inputs(&root.join(folder))));
    for input in &inputs {
        check(target, &root, input, body);
    }
    let number = |name| env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let length = number("TACHO_FUZZ_SECONDS").map(Duration::from_secs);
    let mut rng = Rng::new(number("TACHO_FUZZ_SEED").unwrap_or(1));
    let (start, mut count) = (Instant::now(), 0);
    while length.map_or(count < MUTATIONS, |length| start.elapsed() < length) {
        check(target, &root, &mutated(&mut rng, &inputs), body);
        count += 1;
    }
    println!("{target}: {} inputs and {count} mutations", inputs.len());
}

/// The files of a folder, in the order of their names.
fn inputs(folder: &Path) -> Vec<Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap_or_else(|why| panic!("{}: {why}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.is_file());
    files.sort();
    files.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// Keeps an input that fails where the fuzzer would keep it too.
fn check(target: &str, root: &Path, input: &[u8], body: fn(&[u8])) {
    let Err(panic) = catch_unwind(AssertUnwindSafe(|| body(input))) else { return };
    let folder = root.join("fuzz/artifacts").join(target);
    let file = folder.join("found");
    fs::create_dir_all(&folder).and_then(|()| fs::write(&file, input)).unwrap();
    eprintln!("{target} fails with {}", file.display());
    std::panic::resume_unwind(panic);
}

fn mutated(rng: &mut Rng, inputs: &[Vec<u8>]) -> Vec<u8> {
    let pick = |rng: &mut Rng| &inputs[rng.below(inputs.len() as u64) as usize];
    let mut bytes = pick(rng).clone();
    for _ in 0..rng.between(1, 6) {
        let at = rng.below(bytes.len() as u64 + 1) as usize;
        let rest = bytes.len() - at;
        let end = at + rng.below(rest.min(64) as u64 + 1) as usize;
        match rng.below(8) {
            0 if rest > 0 => bytes[at] ^= 1 << rng.below(8),
            1 if rest > 0 => bytes[at] = EDGES[rng.below(EDGES.len() as u64) as usize],
            2 => bytes.insert(at, rng.next_u64() as u8),
            3 => drop(bytes.drain(at..end)),
            4 => {
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
            5 => bytes.truncate(at),
            6 if rest >= 2 => {
                let wide = [0, u16::MAX, 0x7fff, 0x8000][rng.below(4) as usize];
                bytes[at..at + 2].copy_from_slice(&wide.to_be_bytes());
            }
            _ => {
                // The rest of another input.
                let other = pick(rng);
                let from = rng.below(other.len() as u64 + 1) as usize;
                bytes.truncate(at);
                bytes.extend_from_slice(&other[from..]);
            }
        }
    }
    bytes.truncate(INPUT_BYTES_MAX);
    bytes
}
