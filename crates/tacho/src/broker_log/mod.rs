//! The log of `tacho broker`: levels by area, text or JSON, to standard error or a file.
//!
//! A thread of its own writes: a reader that stalls, or a full disk, must not hold up an event
//! loop. Lines wait for it in a bounded queue; beyond that they are left out and counted.

mod file;
mod journal;

use std::io::{self, IsTerminal as _, Write};

use tacho_broker::{LogFormat, LogLevel, LogSettings};
use tracing_appender::non_blocking::{ErrorCounter, NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer, Registry, fmt, reload};

use crate::output::LogOutput;
use file::LogFile;
use journal::JournalFormat;

/// Lines that wait to be written; about a megabyte.
const WAITING_MAX: usize = 8_192;

/// The log that is running; what waits is written when this is dropped.
pub(crate) struct BrokerLog {
    control: LogControl,
    _writer: WorkerGuard,
}

/// Changes the log that is running.
#[derive(Clone)]
pub(crate) struct LogControl {
    levels: reload::Handle<Targets, Registry>,
    file: Option<LogFile>,
    dropped: ErrorCounter,
    /// By flag, whatever the configuration says.
    flag: Option<LevelFilter>,
}

impl BrokerLog {
    /// Starts the log of this process. `flag` takes the place of all levels.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub(crate) fn start(settings: &LogSettings, flag: Option<LevelFilter>) -> io::Result<Self> {
        let file = settings.file.as_deref();
        let file = file
            .map(|path| LogFile::open(path, settings.file_bytes_max, settings.files_max as usize));
        let file = file.transpose()?;
        let output: Box<dyn Write + Send> = match &file {
            Some(file) => Box::new(file.clone()),
            None => Box::new(LogOutput::new()),
        };
        let builder = NonBlockingBuilder::default().buffered_lines_limit(WAITING_MAX).lossy(true);
        let (output, writer) = builder.thread_name("log").finish(output);
        let dropped = output.error_counter();
        let (filter, levels) = reload::Layer::new(targets(settings, flag));
        let form = match (settings.format, file.is_none()) {
            (LogFormat::Json, _) => Form::Json,
            (LogFormat::Text, true) if journal::is_standard_error() => Form::Journal,
            (LogFormat::Text, to_stderr) => {
                Form::Text { is_colored: to_stderr && io::stderr().is_terminal() }
            }
        };
        let lines = lines(form, output).with_filter(filter);
        tracing_subscriber::registry().with(lines).init();
        Ok(Self { control: LogControl { levels, file, dropped, flag }, _writer: writer })
    }

    pub(crate) fn control(&self) -> LogControl {
        self.control.clone()
    }
}

impl LogControl {
    /// Applies the levels of a configuration, and opens the file anew if it was moved away.
    pub(crate) fn reload(&self, settings: &LogSettings) -> io::Result<()> {
        // Invariant: the subscriber lives as long as the process.
        let _ = self.levels.reload(targets(settings, self.flag));
        self.reopen()
    }

    /// Opens the file anew if it was moved away.
    pub(crate) fn reopen(&self) -> io::Result<()> {
        self.file.as_ref().map_or(Ok(()), LogFile::reopen)
    }

    /// Lines that were left out because they came faster than they could be written.
    pub(crate) fn dropped_lines(&self) -> usize {
        self.dropped.dropped_lines()
    }
}

/// How a line is written.
enum Form {
    Text { is_colored: bool },
    Json,
    Journal,
}

fn lines(form: Form, output: NonBlocking) -> Box<dyn Layer<Registry> + Send + Sync> {
    let lines = fmt::layer().with_writer(output).log_internal_errors(false);
    match form {
        Form::Text { is_colored } => lines.with_ansi(is_colored).with_target(false).boxed(),
        Form::Json => lines.json().flatten_event(true).boxed(),
        // Without colours of the fields, too.
        Form::Journal => lines.with_ansi(false).event_format(JournalFormat::new()).boxed(),
    }
}

/// What is logged. A more exact name of a module counts before a less exact one.
fn targets(settings: &LogSettings, flag: Option<LevelFilter>) -> Targets {
    if let Some(level) = flag {
        return Targets::new().with_default(level);
    }
    let by_area = settings
        .levels
        .iter()
        .flat_map(|(area, level)| area.modules().iter().map(|module| (*module, filter(*level))));
    Targets::new().with_default(filter(settings.level)).with_targets(by_area)
}

const fn filter(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    }
}
