//! Can the program's figures be trusted? `cargo xtask trust` shows it brokers that are wrong by a
//! known amount, compares what it reports with their own records, and writes docs/trust.md's table.

mod burn;
mod evidence;
mod foreign;
mod judge;
mod parts;
mod pieces;
mod responder;
mod runs;
mod table;
mod tools;

use std::env;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand, ValueEnum};

use crate::bench::machine::{Machine, utc_now};
use crate::floor::pin_self_to;
use crate::markers::with_part;
use crate::shell;
use evidence::Evidence;
use judge::Judgement;
use parts::Extent;
use runs::Laboratory;

const DOCUMENT: &str = "docs/trust.md";

#[derive(Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    helper: Option<Helper>,
    #[command(flatten)]
    measuring: Measuring,
}

/// Programs that the measurements start.
#[derive(Subcommand)]
enum Helper {
    /// A broker that is wrong on purpose; prints its port, and its record when its input closes
    Responder(responder::ResponderOptions),
    /// A noisy neighbour: burns cores in bursts
    Burn(burn::BurnOptions),
}

#[derive(Args)]
struct Measuring {
    /// Measure only these parts; the others stay in the record as they are
    #[arg(long, value_name = "PART", value_delimiter = ',')]
    only: Vec<TrustPart>,
    /// Keep everything in bench/runs/<date>-<NAME> and write the table of docs/trust.md
    #[arg(long, value_name = "NAME", conflicts_with = "quick")]
    record: Option<String>,
    /// Go on with the newest record of that name: measure what it lacks, and undecided latencies
    #[arg(long, requires = "record", conflicts_with = "quick")]
    resume: bool,
    /// Begin no measurement that would take longer than what is left of this time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    minutes: Option<u64>,
    /// The release program to measure with, instead of building it
    #[arg(long, value_name = "PROGRAM")]
    tacho: Option<PathBuf>,
    /// Short windows, three searches: to see that everything works
    #[arg(long)]
    quick: bool,
    /// Write the table again from the newest record, without measuring
    #[arg(long, conflicts_with_all = ["only", "record", "resume", "minutes", "tacho", "quick"])]
    render: bool,
    /// Core of the responder
    #[arg(long, default_value_t = 0)]
    broker_cpu: usize,
    /// Core of the generator
    #[arg(long, default_value_t = 1)]
    generator_cpu: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TrustPart {
    /// Every message held for 1, 5 and 50 ms
    Delays,
    /// 300 ms of every 5 s stopped
    Stall,
    /// Searches for the limit of a forwarder
    Capacity,
    /// Lost, doubled and reordered messages
    Faults,
    /// Searches beside a program that burns cores
    Noise,
}

impl TrustPart {
    /// The short ones first.
    const ALL: [Self; 5] = [Self::Delays, Self::Stall, Self::Faults, Self::Capacity, Self::Noise];

    fn name(self) -> &'static str {
        match self {
            Self::Delays => "delays",
            Self::Stall => "stall",
            Self::Capacity => "capacity",
            Self::Faults => "faults",
            Self::Noise => "noise",
        }
    }
}

pub(crate) fn run(options: &Options) -> Result<()> {
    match &options.helper {
        Some(Helper::Responder(options)) => responder::run(options),
        Some(Helper::Burn(options)) => burn::run(options),
        None if options.measuring.render => render(),
        None => measure(&options.measuring),
    }
}

fn measure(options: &Measuring) -> Result<()> {
    if options.broker_cpu == options.generator_cpu {
        bail!("the responder and the generator need a core each");
    }
    let lab = laboratory(options)?;
    // This program waits; the cores belong to the others.
    pin_self_to(&[options.broker_cpu, options.generator_cpu])?;
    let extent = if options.quick { Extent::QUICK } else { Extent::FULL };
    let folder = options.record.as_deref().map(|name| folder(name, options.resume)).transpose()?;
    let mut evidence = folder.as_deref().map(Evidence::load).transpose()?.unwrap_or_default();
    let wanted = |subject: &TrustPart| options.only.is_empty() || options.only.contains(subject);
    let subjects: Vec<TrustPart> = TrustPart::ALL.into_iter().filter(wanted).collect();
    for subject in &subjects {
        match options.resume {
            true => pieces::clear_undecided(*subject, &mut evidence),
            false => pieces::clear(*subject, &mut evidence),
        }
    }
    evidence.sign(Machine::look())?;
    let deadline =
        options.minutes.map(|minutes| Instant::now() + Duration::from_secs(minutes * 60));
    let has_time = |seconds| {
        deadline.is_none_or(|deadline| Instant::now() + Duration::from_secs(seconds) <= deadline)
    };
    let mut left = Vec::new();
    for subject in &subjects {
        println!("{}", subject.name());
        while let Some(piece) = pieces::next(*subject, extent, &evidence) {
            if !has_time(piece.seconds(extent)) {
                left.push(subject.name());
                break;
            }
            piece.measure(&lab, extent, &mut evidence)?;
            evidence.measured.insert(subject.name().to_owned(), utc_now()?);
            if let Some(folder) = &folder {
                evidence.save(folder, &table::table(&evidence))?;
            }
        }
    }
    print!("\n{}", table::table(&evidence));
    if folder.is_some() {
        render()?;
    }
    conclude(&evidence, &subjects, extent, &left)
}

/// Where a record is kept: in a folder of today, or in the one that is continued.
fn folder(name: &str, is_resumed: bool) -> Result<PathBuf> {
    let parent = shell::root().join("bench/runs");
    if is_resumed {
        return evidence::newest_named(&parent, name)
            .with_context(|| format!("no record in bench/runs is called {name}"));
    }
    let now = utc_now()?;
    let date = now.get(..evidence::DATE_LEN).unwrap_or(&now);
    Ok(parent.join(format!("{date}-{name}")))
}

/// The programs: release builds, but for a quick look this one serves as the responder.
fn laboratory(options: &Measuring) -> Result<Laboratory> {
    let release = shell::target_dir().join("release");
    let mut build = shell::cargo();
    build.args(["build", "--release"]);
    let tacho = match &options.tacho {
        Some(path) => {
            fs::canonicalize(path).with_context(|| format!("there is no program {path:?}"))?
        }
        None => {
            build.args(["-p", "tacho"]);
            release.join("tacho")
        }
    };
    let is_own = options.quick || !cfg!(debug_assertions);
    let xtask = if is_own {
        env::current_exe().context("cannot find this program")?
    } else {
        build.args(["-p", "xtask"]);
        release.join("xtask")
    };
    if options.tacho.is_none() || !is_own {
        shell::run(&mut build)?;
    }
    let folder = shell::target_dir().join("trust");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {folder:?}"))?;
    let (broker_cpu, generator_cpu) = (options.broker_cpu, options.generator_cpu);
    Ok(Laboratory { tacho, xtask, folder, broker_cpu, generator_cpu })
}

/// Puts the newest record into the document.
fn render() -> Result<()> {
    let folder = evidence::newest().context("no record in bench/runs has a trust.json")?;
    let path = shell::root().join(DOCUMENT);
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path:?}"))?;
    let table = table::table(&Evidence::load(&folder)?);
    let text =
        with_part(&text, "trust", &table).with_context(|| format!("{DOCUMENT}: no markers"))?;
    fs::write(&path, text).with_context(|| format!("cannot write {path:?}"))
}

/// Fails for anything wrong, when the time was over (`left`), and when too little is decided.
fn conclude(
    evidence: &Evidence,
    subjects: &[TrustPart],
    extent: Extent,
    left: &[&str],
) -> Result<()> {
    let mut undecided = Vec::new();
    for subject in subjects {
        let judgements = judgements(evidence, *subject);
        let count = |wanted| judgements.iter().filter(|found| **found == wanted).count();
        let wrong = count(Judgement::Wrong);
        if wrong > 0 {
            bail!("{}: {wrong} of {} are wrong", subject.name(), judgements.len());
        }
        let enough = match subject {
            TrustPart::Delays => 3,
            TrustPart::Stall => 1,
            TrustPart::Capacity => extent.searches,
            TrustPart::Faults => 3,
            // A search beside a noisy program may always end without a result.
            TrustPart::Noise => 0,
        };
        if count(Judgement::Right) < enough {
            undecided.push(subject.name());
        }
    }
    if !left.is_empty() {
        bail!("no time was left for: {}; a record goes on with --resume", left.join(", "));
    }
    if undecided.is_empty() {
        return Ok(());
    }
    bail!("cannot be told on this machine, which was disturbed: {}", undecided.join(", "))
}

fn judgements(evidence: &Evidence, subject: TrustPart) -> Vec<Judgement> {
    match subject {
        TrustPart::Delays => evidence.delays.iter().map(judge::LatencyRun::judge).collect(),
        TrustPart::Stall => evidence.stalls.iter().map(judge::LatencyRun::judge).collect(),
        TrustPart::Capacity => evidence.searches.iter().map(judge::SearchRun::judge).collect(),
        TrustPart::Faults => evidence.faults.iter().map(judge::FaultRun::judge).collect(),
        TrustPart::Noise => evidence.noisy_searches.iter().map(judge::SearchRun::judge).collect(),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::judge::{LatencyRun, Percentile};
    use super::*;

    fn stall(reported_us: f64, verdict: &str) -> LatencyRun {
        LatencyRun {
            shown: "stall".into(),
            is_uniform: false,
            verdict: verdict.into(),
            steal_percent: 0.0,
            is_left_out: false,
            is_within_tolerance: false,
            percentiles: vec![Percentile {
                name: "max".into(),
                reported_us,
                reported_us_min: None,
                recorded_us: 3e5,
            }],
        }
    }

    fn conclusion(stalls: Vec<LatencyRun>) -> String {
        let evidence = Evidence { stalls, ..Evidence::default() };
        let result = conclude(&evidence, &[TrustPart::Stall], Extent::QUICK, &[]);
        result.map_or_else(|error| error.to_string(), |()| "right".to_owned())
    }

    #[test]
    fn one_wrong_figure_fails_the_command() {
        assert_eq!(conclusion(vec![stall(3.01e5, "ok")]), "right");
        let disturbed = || stall(9e5, "disturbed");
        assert_eq!(conclusion(vec![disturbed(), stall(3.01e5, "ok")]), "right");
        // The tail that a generator reports when it waits for answers.
        assert_eq!(conclusion(vec![stall(1e5, "ok")]), "stall: 1 of 1 are wrong");
        let unknown = conclusion(vec![disturbed(), disturbed()]);
        assert!(unknown.starts_with("cannot be told"), "{unknown}");
    }

    #[test]
    fn a_part_without_time_fails_the_command_but_a_wrong_figure_is_said_first() {
        let conclude = |stalls| {
            let evidence = Evidence { stalls, ..Evidence::default() };
            let parts = [TrustPart::Stall, TrustPart::Faults];
            let result = conclude(&evidence, &parts, Extent::QUICK, &["faults"]);
            result.expect_err("something is missing").to_string()
        };
        let late = conclude(vec![stall(3.01e5, "ok")]);
        assert_eq!(late, "no time was left for: faults; a record goes on with --resume");
        assert_eq!(conclude(vec![stall(1e5, "ok")]), "stall: 1 of 1 are wrong");
    }

    #[test]
    fn only_a_record_can_go_on() {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            options: Options,
        }
        let parse = |line: &str| Line::try_parse_from(format!("trust {line}").split_whitespace());
        assert!(parse("--resume").is_err() && parse("--resume --quick").is_err());
        assert!(parse("--minutes 0 --quick").is_err());
        let line = parse("--record x --resume --minutes 8 --only delays,stall").expect("accepted");
        assert_eq!(line.options.measuring.minutes, Some(8));
    }

    #[test]
    fn every_part_has_its_evidence() {
        let nothing = Evidence::default();
        for subject in TrustPart::ALL {
            assert!(judgements(&nothing, subject).is_empty());
            let result = conclude(&nothing, &[subject], Extent::QUICK, &[]);
            assert_eq!(result.is_err(), subject != TrustPart::Noise, "{subject:?}");
        }
    }
}
