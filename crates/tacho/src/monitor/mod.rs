//! `tacho monitor`: shows the resource use of a host, or offers it to runs on other machines.

mod metrics;
mod table;

use std::io::{self, ErrorKind, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::Args;
use tacho_lab::points::HostClock;
use tacho_monitor::{
    AgentServer, HostRow, MonitorSpec, ProcRoot, ProcessSelector, SourceSpec, Token, Watch,
    WatchedProcess, interval,
};
use tacho_output::Outputs;

use crate::exit::{self, Failure};
use crate::out_arguments::OutArguments;
use crate::signals::stop_flag;
use metrics::HostMetrics;
use table::Table;

/// How long to wait before looking for rows and signals again.
const NAP: Duration = Duration::from_millis(20);

/// How long outputs may take the rest at the end.
const FAREWELL: Duration = Duration::from_secs(5);

/// Show the resource use of a host, a line per second; or offer it to 'tacho run --monitor' on
/// another machine.
///
/// CPU by state, load, memory, network, TCP errors, descriptors, pressure; and selected processes.
/// Ends with Ctrl-C or after --count rows.
#[derive(Args, Debug)]
pub(crate) struct MonitorArguments {
    /// Source to show, as for 'tacho run --monitor': local, agent://HOST:PORT,
    /// prometheus+http://HOST:PORT/metrics or collectd://ADDRESS:PORT
    #[arg(default_value = "local", value_name = "SOURCE",
          value_parser = |text: &str| MonitorSpec::parse(text).map_err(|error| error.to_string()))]
    source: MonitorSpec,

    /// Watch the process with this id; may be given several times
    #[arg(long, value_name = "PID")]
    pid: Vec<u32>,

    /// Watch the processes with this name; may be given several times
    #[arg(long, value_name = "NAME")]
    process: Vec<String>,

    /// Watch the process that listens on this TCP port; may be given several times
    #[arg(long, value_name = "PORT")]
    port: Vec<u16>,

    /// Time between rows, such as 500ms or 10s; 1s by default
    #[arg(long, value_name = "TIME", value_parser = interval)]
    interval: Option<Duration>,

    /// End after N rows
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,

    /// A JSON object per row instead of the table
    #[arg(long)]
    json: bool,

    /// Print no rows, only errors
    #[arg(long, short, conflicts_with = "json")]
    quiet: bool,

    #[command(flatten)]
    out: OutArguments,

    /// Answer /metrics (for Prometheus) by HTTP at this host:port: the last figures of each host
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,

    /// Allow a --metrics address that is not on loopback: everyone who reaches it sees the figures
    #[arg(long, requires = "metrics")]
    metrics_allow_remote: bool,

    /// Offer the figures at this address, host:port with a numeric host, to clients that know the
    /// token; port 0 takes a free one
    ///
    /// The token comes from --token-file or TACHO_MONITOR_TOKEN. Without either, a token is
    /// generated and printed, on loopback addresses only.
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["source", "interval", "count", "json", "quiet", "outputs"])]
    listen: Option<SocketAddr>,

    /// File with the token for --listen, at least 16 characters
    #[arg(long, value_name = "FILE", requires = "listen")]
    token_file: Option<PathBuf>,
}

/// Shows or offers until the end.
pub(crate) fn monitor(arguments: &MonitorArguments) -> Result<u8, Failure> {
    match arguments.listen {
        Some(address) => offer(arguments, address),
        None => show(arguments),
    }
}

impl MonitorArguments {
    /// The server of `/metrics`, where it is asked for.
    fn host_metrics(&self, interval: Duration) -> Result<Option<HostMetrics>, Failure> {
        let Some(address) = self.metrics else { return Ok(None) };
        if !address.ip().is_loopback() && !self.metrics_allow_remote {
            return Err(invalid(format!(
                "everyone who reaches {address} would see the figures of this host: add \
                 --metrics-allow-remote if that is meant, or use an address such as 127.0.0.1:{}",
                address.port()
            )));
        }
        HostMetrics::start(address, interval).map(Some)
    }

    /// This machine and the server of its `/metrics`, beside an agent that asks only for clients.
    fn scraped(
        &self,
        processes: &[WatchedProcess],
    ) -> Result<Option<(Watch, HostMetrics)>, Failure> {
        let mut spec = self.source.clone();
        spec.processes.extend(processes.iter().cloned());
        let Some(metrics) = self.host_metrics(spec.interval)? else { return Ok(None) };
        let watch = Watch::start(&[spec]).map_err(invalid)?;
        Ok(Some((watch, metrics)))
    }

    fn processes(&self) -> Vec<WatchedProcess> {
        let pids = self.pid.iter().map(|pid| ProcessSelector::Pid(*pid));
        let names = self.process.iter().map(|name| ProcessSelector::Name(name.clone()));
        let ports = self.port.iter().map(|port| ProcessSelector::Port(*port));
        let selectors = pids.chain(names).chain(ports);
        selectors
            .map(|selector| WatchedProcess { selector, target: None, optional: false })
            .collect()
    }
}

fn invalid(error: impl std::fmt::Display) -> Failure {
    Failure::new(exit::INVALID_CONFIG, error)
}

fn show(arguments: &MonitorArguments) -> Result<u8, Failure> {
    let mut spec = arguments.source.clone();
    let processes = arguments.processes();
    let takes_processes = matches!(spec.source, SourceSpec::Local | SourceSpec::Agent { .. });
    if !processes.is_empty() && !takes_processes {
        return Err(invalid(format!(
            "{} knows its own processes: --pid, --process and --port are for this machine and for \
             agents",
            spec.source
        )));
    }
    spec.processes.extend(processes);
    spec.interval = arguments.interval.unwrap_or(spec.interval);
    let stop = stop_flag()?;
    let mut metrics = arguments.host_metrics(spec.interval)?;
    let mut watch = Watch::start(&[spec]).map_err(invalid)?;
    let outputs = arguments.out.open(Vec::new())?;
    let clock = HostClock::now();
    let mut printer =
        Printer { json: arguments.json, quiet: arguments.quiet, table: Table::default() };
    let mut left = arguments.count.unwrap_or(u64::MAX);
    let mut errors = 0;
    while left > 0 && !stop.load(Ordering::Relaxed) {
        std::thread::sleep(NAP);
        for report in watch.reports() {
            if let Some(error) = report.last_error.filter(|_| report.errors > errors) {
                errors = report.errors;
                eprintln!("{}: {error}", report.source);
            }
        }
        for (output, why) in outputs.take_troubles() {
            eprintln!("output {output}: {why}; further errors are only counted");
        }
        if let Some((output, why)) = outputs.failure() {
            let sentence = format!("the output {output} failed (on-failure=end): {why}");
            return Err(Failure::new(exit::UNEXPECTED, sentence));
        }
        for row in watch.rows() {
            if left == 0 {
                break;
            }
            left -= 1;
            outputs.send(vec![clock.point(&row)]);
            metrics.iter_mut().for_each(|metrics| metrics.take(&row));
            match printer.print(&row) {
                Ok(()) => {}
                // The reader has closed the pipe.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => left = 0,
                Err(error) => return Err(Failure::new(exit::UNEXPECTED, error)),
            }
        }
        metrics.iter_mut().for_each(HostMetrics::update);
    }
    farewell(&outputs);
    Ok(exit::OK)
}

/// Waits until the outputs have the rest, and tells what they did not get.
fn farewell(outputs: &Outputs) {
    for account in outputs.end_series(FAREWELL).iter().filter(|account| !account.is_clean()) {
        let error = account.last_error.as_deref().unwrap_or("unknown");
        let (target, lost) = (&account.target, account.lost());
        eprintln!("output {target} did not get {lost} records, the last error: {error}");
    }
}

/// Prints rows to standard output.
struct Printer {
    json: bool,
    quiet: bool,
    table: Table,
}

impl Printer {
    fn print(&mut self, row: &HostRow) -> io::Result<()> {
        if self.quiet {
            return Ok(());
        }
        let mut out = io::stdout().lock();
        match self.json {
            true => writeln!(out, "{}", serde_json::to_string(row)?)?,
            false => self.table.lines(row).iter().try_for_each(|line| writeln!(out, "{line}"))?,
        }
        out.flush()
    }
}

fn offer(arguments: &MonitorArguments, address: SocketAddr) -> Result<u8, Failure> {
    let given = match &arguments.token_file {
        Some(path) => Some(Token::read(path).map_err(invalid)?),
        None => Token::from_environment().map_err(invalid)?,
    };
    let stop = stop_flag()?;
    let (token, text) = match given {
        Some(token) => (token, None),
        None => {
            let (token, text) = Token::generate().map_err(invalid)?;
            (token, Some(text))
        }
    };
    let processes = arguments.processes();
    let mut scraped = arguments.scraped(&processes)?;
    let agent = AgentServer::start(address, token, text.is_none(), ProcRoot::default(), processes)
        .map_err(invalid)?;
    eprintln!(
        "listening on {}; watch it with --monitor agent://{}",
        agent.address(),
        agent.address()
    );
    if let Some(text) = text {
        eprintln!("made up this token, set TACHO_MONITOR_TOKEN to it on the other side: {text}");
    }
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(NAP);
        if let Some((watch, metrics)) = &mut scraped {
            watch.rows().iter().for_each(|row| metrics.take(row));
            metrics.update();
        }
    }
    let counts = agent.counts();
    eprintln!(
        "stopped after {} rows for {} clients; {} refused, {} too many, {} too slow",
        counts.rows, counts.admitted, counts.refused, counts.too_many, counts.slow
    );
    Ok(exit::OK)
}
