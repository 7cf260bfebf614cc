//! A disk that fails under a real program: `crates/tacho/tests/disk_faults.c`, compiled on demand
//! and loaded with `LD_PRELOAD`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// What goes wrong: shares of a thousand calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskFault {
    /// Syncs that fail with EIO.
    pub sync_error: u32,
    /// Writes that fail with EIO.
    pub write_error: u32,
    /// Writes that fail with ENOSPC.
    pub full: u32,
    /// Writes of which only a part is done.
    pub short: u32,
    /// Reads that fail with EIO.
    pub read_error: u32,
    /// Microseconds that each write and sync takes longer.
    pub delay_us: u32,
}

/// The calls of programs on the files of a directory.
#[derive(Clone, Debug)]
pub struct FaultyDisk {
    library: PathBuf,
    directory: PathBuf,
    control: PathBuf,
    log: PathBuf,
}

/// How often calls went wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskFaultsSeen {
    /// Syncs that failed.
    pub sync_errors: usize,
    /// Writes that failed with EIO.
    pub write_errors: usize,
    /// Writes that failed with ENOSPC.
    pub full: usize,
    /// Writes of which only a part was done.
    pub short: usize,
    /// Reads that failed.
    pub read_errors: usize,
}

impl FaultyDisk {
    /// For files in `directory`, which exists. `folder` is for what it needs itself. `None`, with a
    /// sentence on standard error, where programs cannot be preloaded or there is no C compiler.
    pub fn new(directory: &Path, folder: &Path) -> Option<Self> {
        if !cfg!(all(target_os = "linux", target_env = "gnu", target_pointer_width = "64")) {
            eprintln!("skipped: faults of a disk need 64-bit Linux with glibc");
            return None;
        }
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tacho/tests/disk_faults.c");
        let library = folder.join("disk_faults.so");
        let compiler = env::var("CC").unwrap_or_else(|_| "cc".to_owned());
        let mut command = Command::new(&compiler);
        command.args(["-std=gnu11", "-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o"]);
        match command.arg(&library).arg(&source).status() {
            Ok(status) if status.success() => {}
            Ok(status) => panic!("{compiler} cannot compile {}: {status}", source.display()),
            Err(why) => {
                eprintln!("skipped: no C compiler for the faults of a disk: {compiler}: {why}");
                return None;
            }
        }
        let directory = directory.canonicalize().unwrap();
        let (control, log) = (folder.join("disk_faults"), folder.join("disk_faults.log"));
        let disk = Self { library, directory, control, log };
        disk.set(DiskFault::default());
        Some(disk)
    }

    /// From now on this goes wrong.
    pub fn set(&self, fault: DiskFault) {
        let DiskFault { sync_error, write_error, full, short, read_error, delay_us } = fault;
        let text = format!(
            "sync_error {sync_error}\nwrite_error {write_error}\nfull {full}\nshort {short}\n\
             read_error {read_error}\ndelay_us {delay_us}\n"
        );
        let new = self.control.with_extension("new");
        fs::write(&new, text).unwrap();
        fs::rename(&new, &self.control).unwrap();
    }

    /// What went wrong so far, in all programs that it was put under.
    pub fn seen(&self) -> DiskFaultsSeen {
        let letters = fs::read(&self.log).unwrap_or_default();
        let count = |letter: u8| letters.iter().filter(|&&seen| seen == letter).count();
        DiskFaultsSeen {
            sync_errors: count(b's'),
            write_errors: count(b'w'),
            full: count(b'f'),
            short: count(b'h'),
            read_errors: count(b'r'),
        }
    }

    /// Puts it under a program that is about to start.
    pub fn put_under(&self, command: &mut Command) {
        command.env("LD_PRELOAD", &self.library);
        command.env("TACHO_FAULTS_DIR", &self.directory);
        command.env("TACHO_FAULTS_FILE", &self.control);
        command.env("TACHO_FAULTS_LOG", &self.log);
    }
}
