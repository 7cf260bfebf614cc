//! Files that points are written to.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

use super::answer::Uptake;

/// A file; compressed where its name ends in `.gz`.
#[derive(Debug)]
pub(super) struct FileSink {
    path: PathBuf,
    out: FileOut,
}

#[derive(Debug)]
enum FileOut {
    Plain(BufWriter<File>),
    /// Gone once it has ended.
    Gzip(Option<GzEncoder<BufWriter<File>>>),
}

impl FileSink {
    /// Creates the file, empty.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let out = BufWriter::new(File::create(path)?);
        let out = match path.extension().is_some_and(|extension| extension == "gz") {
            false => FileOut::Plain(out),
            true => FileOut::Gzip(Some(GzEncoder::new(out, Compression::default()))),
        };
        Ok(Self { path: path.to_owned(), out })
    }

    /// Appends a piece and hands it to the system, so that readers can follow.
    pub(super) fn deliver(&mut self, bytes: &[u8]) -> Uptake {
        let written = match &mut self.out {
            FileOut::Plain(out) => out.write_all(bytes).and_then(|()| out.flush()),
            FileOut::Gzip(Some(out)) => out.write_all(bytes),
            FileOut::Gzip(None) => Err(io::Error::other("it has ended")),
        };
        match written {
            Ok(()) => Uptake::Taken { refused: 0, why: None },
            Err(error) => {
                let why = format!("cannot write {}: {error}", self.path.display());
                Uptake::Refused { why }
            }
        }
    }
}

impl Drop for FileSink {
    fn drop(&mut self) {
        if let FileOut::Gzip(out) = &mut self.out
            && let Some(out) = out.take()
            && let Err(error) = out.finish().and_then(|mut file| file.flush())
        {
            // There is no later moment at which the loss could be counted.
            let _ = writeln!(io::stderr(), "cannot end {}: {error}", self.path.display());
        }
    }
}
