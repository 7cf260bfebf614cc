//! A wheel for Python: `pip install` and `uvx` bring the program into a job in seconds
//! (packaging.python.org: binary distribution format, platform compatibility tags).

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use flate2::Compression;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use super::Source;
use super::archive::sha256;
use super::tree::Tree;
use crate::shell;

/// A file of the wheel.
struct WheelEntry {
    name: String,
    mode: u32,
    bytes: Vec<u8>,
}

/// Makes the wheel in a directory; its name.
pub(super) fn make(source: &Source, tree: &Tree, out: &Path) -> Result<String> {
    let platforms = platforms(source);
    let name = format!("tacho-{}-py3-none-{}.whl", source.version, platforms.join("."));
    let path = out.join(&name);
    let file = File::create(&path).with_context(|| format!("cannot make {}", path.display()))?;
    let mut zip = ZipWriter::new(file);
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .compression_level(Some(Compression::best().level().into()))
        .last_modified_time(DateTime::default());
    let mut record = String::new();
    let info = format!("tacho-{}.dist-info", source.version);
    for WheelEntry { name, mode, bytes } in entries(source, tree, &info, &platforms)? {
        zip.start_file(&name, options.unix_permissions(mode))?;
        zip.write_all(&bytes)?;
        let sum = sum(&bytes, &out.join("entry"))?;
        // Invariant: a String takes what is written.
        let _ = writeln!(record, "{name},sha256={sum},{}", bytes.len());
    }
    record.push_str(&format!("{info}/RECORD,,\n"));
    zip.start_file(format!("{info}/RECORD"), options.unix_permissions(0o644))?;
    zip.write_all(record.as_bytes())?;
    zip.finish()?;
    Ok(name)
}

fn entries(
    source: &Source,
    tree: &Tree,
    info: &str,
    platforms: &[String],
) -> Result<Vec<WheelEntry>> {
    let version = source.version;
    let read =
        |path: &Path| fs::read(path).with_context(|| format!("cannot read {}", path.display()));
    let mut metadata = format!(
        "Metadata-Version: 2.4\nName: tacho\nVersion: {version}\n\
         Summary: Load-tests MQTT brokers, and includes a fast one\n\
         License-Expression: Apache-2.0\nLicense-File: LICENSE\nRequires-Python: >=3.7\n\
         Description-Content-Type: text/markdown\n\n"
    );
    metadata.push_str(&String::from_utf8(read(&shell::root().join("packaging/wheel.md"))?)?);
    let mut wheel = "Wheel-Version: 1.0\nGenerator: xtask\nRoot-Is-Purelib: false\n".to_owned();
    for platform in platforms {
        let _ = writeln!(wheel, "Tag: py3-none-{platform}");
    }
    let entry = |name: String, mode: u32, bytes: Vec<u8>| WheelEntry { name, mode, bytes };
    Ok(vec![
        entry(
            format!("tacho-{version}.data/scripts/tacho"),
            0o755,
            read(&tree.root().join("usr/bin/tacho"))?,
        ),
        entry(format!("{info}/METADATA"), 0o644, metadata.into_bytes()),
        entry(format!("{info}/WHEEL"), 0o644, wheel.into_bytes()),
        entry(format!("{info}/licenses/LICENSE"), 0o644, read(&shell::root().join("LICENSE"))?),
    ])
}

/// Where the program runs.
fn platforms(source: &Source) -> Vec<String> {
    let arch = &source.arch;
    match source.program.libc_min() {
        Some((major, minor)) => vec![format!("manylinux_{major}_{minor}_{arch}")],
        // A static program needs none of both.
        None => vec![format!("manylinux_2_17_{arch}"), format!("musllinux_1_1_{arch}")],
    }
}

/// The SHA-256 as a wheel's list of files writes it; the bytes lie in a file meanwhile.
fn sum(bytes: &[u8], path: &Path) -> Result<String> {
    fs::write(path, bytes)?;
    let digits = sha256(path)?;
    fs::remove_file(path)?;
    let pairs = digits.as_bytes().chunks(2).map(str::from_utf8);
    let sum: Option<Vec<u8>> = pairs.map(|pair| u8::from_str_radix(pair.ok()?, 16).ok()).collect();
    match sum {
        Some(sum) => Ok(URL_SAFE_NO_PAD.encode(sum)),
        None => bail!("{digits:?} is no sum"),
    }
}
