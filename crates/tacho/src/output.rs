//! Printing for readers that may go away, as in `tacho ... | head -1`.
//!
//! The macros of the standard library panic when nothing reads their output any more. Those of
//! this module have the same names and are the ones in use in this crate: output that nothing
//! reads is dropped, and the command goes on to its files and its exit code.

use std::fmt::Arguments;
use std::io::{self, Write};

/// Writes to standard output; output that cannot be written is dropped.
pub(crate) fn out(text: Arguments<'_>) {
    let _ = io::stdout().write_fmt(text);
}

/// Writes to standard error; output that cannot be written is dropped.
pub(crate) fn err(text: Arguments<'_>) {
    let _ = io::stderr().write_fmt(text);
}

/// Standard error, for a log: what cannot be written is dropped.
pub(crate) struct LogOutput(io::Stderr);

impl LogOutput {
    pub(crate) fn new() -> Self {
        Self(io::stderr())
    }
}

impl Write for LogOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = self.0.write_all(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

macro_rules! print {
    ($($text:tt)*) => { $crate::output::out(format_args!($($text)*)) };
}

macro_rules! println {
    () => { $crate::output::out(format_args!("\n")) };
    ($($text:tt)*) => {
        $crate::output::out(format_args!("{}\n", format_args!($($text)*)))
    };
}

macro_rules! eprint {
    ($($text:tt)*) => { $crate::output::err(format_args!($($text)*)) };
}

macro_rules! eprintln {
    () => { $crate::output::err(format_args!("\n")) };
    ($($text:tt)*) => {
        $crate::output::err(format_args!("{}\n", format_args!($($text)*)))
    };
}
