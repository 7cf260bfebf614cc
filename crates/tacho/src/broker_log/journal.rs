//! Lines for the journal of systemd, where standard error leads there (sd-daemon(3)).

use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::{Format, Full, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// The environment variable with device and inode of the journal's socket.
const STREAM: &str = "JOURNAL_STREAM";

/// Whether what is written to standard error goes to the journal.
pub(super) fn is_standard_error() -> bool {
    let Ok(stream) = std::env::var(STREAM) else { return false };
    let Ok(owned) = io::stderr().as_fd().try_clone_to_owned() else { return false };
    let about = File::from(owned).metadata();
    about.is_ok_and(|about| stream == format!("{}:{}", about.dev(), about.ino()))
}

/// Lines with their priority in front, and without a time, which the journal has.
pub(super) struct JournalFormat(Format<Full, ()>);

impl JournalFormat {
    pub(super) fn new() -> Self {
        Self(tracing_subscriber::fmt::format().without_time().with_target(false).with_ansi(false))
    }
}

impl<S, N> FormatEvent<S, N> for JournalFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> std::fmt::Result {
        write!(writer, "<{}>", priority(*event.metadata().level()))?;
        self.0.format_event(context, writer, event)
    }
}

/// Of syslog(3).
const fn priority(level: Level) -> u8 {
    match level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        _ => 7,
    }
}
