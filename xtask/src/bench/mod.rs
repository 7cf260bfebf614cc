//! `cargo xtask bench`: measures the performance targets of the project and records the results.
//!
//! Broker on one core, generator on another, every case once per round and the rounds interleaved,
//! so that a slow minute of the machine affects all cases; figures are medians of the rounds.

mod abuse;
mod attack;
mod background;
mod case;
mod case_set;
mod certificates;
mod connects;
mod disk;
mod durable;
pub(crate) mod figures;
mod growth;
mod idle;
mod leavers;
mod login;
pub(crate) mod machine;
pub(crate) mod metrics;
mod partial;
mod peers;
mod population;
mod ratio;
mod report;
mod routing;
mod runner;
mod scaling;
mod target;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::brokers::{self, Broker};
use crate::shell;
use case::Case;
use case_set::CaseSet;
use figures::{Figures, Sample};
use runner::Runner;

#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Only cases whose name contains this; may be given several times
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Rounds: runs of each case
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Measured seconds of every run
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// One round of two seconds without a record, as a smoke test
    #[arg(long)]
    quick: bool,
    /// Seconds to wait before each run until the machine is idle
    #[arg(long, default_value_t = 60)]
    idle_wait: u64,
    /// Run the durability cases instead of the speed cases
    #[arg(long)]
    durable: bool,
    /// The same workloads on Tacho and every other broker that can be had here, in turns
    #[arg(long, conflicts_with_all = ["durable", "against"])]
    peers: bool,
    /// What 1, 2, 4 and 8 shards carry, each on a core of its own, the generator on the others
    #[arg(long, conflicts_with_all = ["durable", "peers"])]
    scaling: bool,
    /// What a message costs as clients, the payload, topics or subscriptions grow
    #[arg(long, conflicts_with_all = ["durable", "peers", "scaling"])]
    growth: bool,
    /// Write the table of BENCHMARKING.md again from the newest record of logins, without measuring
    #[arg(long, conflicts_with_all = ["only", "durable", "quick", "against", "list"])]
    render: bool,
    /// List the cases and exit
    #[arg(long)]
    list: bool,
    /// Last part of the record's name under bench/runs; speed, or that of the chosen set of cases:
    /// durability, peers, scaling, growth, login
    #[arg(long)]
    name: Option<String>,
    /// Another tacho program, such as a build of an earlier commit: every case of Tacho runs with
    /// both in turns, and the record has the ratios
    #[arg(long, value_name = "PROGRAM")]
    against: Option<PathBuf>,
    /// Core of the broker
    #[arg(long, default_value_t = 0)]
    broker_cpu: usize,
    /// Core of the generator
    #[arg(long, default_value_t = 1)]
    generator_cpu: usize,
}

impl Options {
    /// Last part of the record's name.
    fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_else(|| self.set().name())
    }

    fn set(&self) -> CaseSet {
        if self.durable {
            CaseSet::Durability
        } else if self.peers {
            CaseSet::Peers
        } else if self.scaling {
            CaseSet::Scaling
        } else if self.growth {
            CaseSet::Growth
        } else if self.only == [login::PART] {
            CaseSet::Logins
        } else {
            CaseSet::Speed
        }
    }
}

pub(crate) fn run(options: &Options) -> Result<()> {
    if options.render {
        return login::table::render();
    }
    let mut options = options.clone();
    if options.quick {
        options.rounds = 1;
        options.seconds = 2;
        options.idle_wait = 0;
    }
    let wanted = |case: &Case| {
        options.only.is_empty() || options.only.iter().any(|part| case.name.contains(part))
    };
    let brokers = other_brokers(&options)?;
    let all = match options.set() {
        CaseSet::Speed | CaseSet::Logins => case::all(),
        CaseSet::Durability => durable::all(),
        CaseSet::Peers => peers::all(&brokers),
        CaseSet::Scaling => scaling::all(),
        CaseSet::Growth => growth::all(),
    };
    let cases: Vec<Case> = all.into_iter().filter(wanted).collect();
    if options.list {
        cases.iter().for_each(|case| println!("{:<26} {}", case.name, case.what));
        return Ok(());
    }
    if cases.is_empty() || options.rounds == 0 || options.seconds == 0 {
        bail!("no case matches: `--list` shows all cases");
    }
    if let Some(program) = &mut options.against {
        *program = program.canonicalize().with_context(|| format!("cannot find {program:?}"))?;
    }
    build()?;
    let runners = Runners::new(&options, &brokers)?;
    let started = machine::utc_now().context("cannot read the date")?;
    let figures = measure(&options, &cases, &runners);
    let mut results = match options.set() {
        CaseSet::Speed | CaseSet::Logins | CaseSet::Peers => target::judge(&figures),
        CaseSet::Durability => target::judge_durability(&figures),
        CaseSet::Scaling => scaling::judge(&figures),
        CaseSet::Growth => growth::judge(&figures),
    };
    if !options.only.is_empty() || options.peers {
        results.retain(|verdict| verdict.value.is_some());
    }
    if !results.is_empty() {
        print!("\n{}", report::targets(&results));
    }
    if options.against.is_some() {
        print!("\n{}", ratio::table(&cases, &figures));
    }
    let tables = match options.set() {
        CaseSet::Peers => format!("## Brokers\n\n{}\n", peers::tables(&brokers, &figures)),
        CaseSet::Growth => format!("## Ladders\n\n{}", growth::tables(&figures)),
        _ => String::new(),
    };
    print!("\n{tables}");
    if !options.quick {
        let about = report::About { options: &options, started: &started, tables };
        let folder = report::write(&about, &cases, &figures, &results)?;
        println!("\nrecord: {}", folder.display());
        if options.name() == login::PART {
            login::table::render()?;
        }
    }
    Ok(())
}

/// The brokers of `--peers`, Tacho among them.
fn other_brokers(options: &Options) -> Result<Vec<Broker>> {
    if !options.peers {
        return Ok(Vec::new());
    }
    // It is asked for its version.
    build()?;
    brokers::chosen(&[], &release("tacho"), true)
}

fn build() -> Result<()> {
    shell::run(shell::cargo().args(["build", "--release", "-p", "tacho", "-p", "xtask"]))
}

fn release(program: &str) -> PathBuf {
    shell::target_dir().join("release").join(program)
}

/// Runs all cases round by round.
fn measure(options: &Options, cases: &[Case], runners: &Runners) -> Figures {
    let mut figures = Figures::default();
    for round in 1..=options.rounds {
        // Every other round backwards: a drift of the machine favours no case.
        let mut order: Vec<&Case> = cases.iter().filter(|case| case.is_due(round)).collect();
        if round.is_multiple_of(2) {
            order.reverse();
        }
        for case in order {
            if !machine::wait_until_idle(options.idle_wait) && !options.quick {
                eprintln!("the machine is busy: figures will be unreliable");
            }
            for (name, result) in runners.run(case, round) {
                match result {
                    Ok(sample) => {
                        println!("{round}/{} {}", options.rounds, sample.line());
                        figures.push(sample);
                    }
                    // A failed case must not end a long session.
                    Err(error) => eprintln!("{round}/{} {name}: {error:#}", options.rounds),
                }
            }
        }
    }
    figures
}

/// The program of this tree, and the one compared with it.
struct Runners {
    this: Runner,
    other: Option<Runner>,
}

impl Runners {
    fn new(options: &Options, brokers: &[Broker]) -> Result<Self> {
        let runner = |program: &Path| Runner::new(options, program, brokers);
        let other = options.against.as_deref().map(runner);
        Ok(Self { this: runner(&release("tacho"))?, other: other.transpose()? })
    }

    /// Runs a case with each program; their order alternates by round.
    fn run(&self, case: &Case, round: usize) -> Vec<(String, Result<Sample>)> {
        let other = self.other.as_ref().filter(|_| case.is_of_tacho());
        let before = case.of_other_program();
        let mut runs = vec![(case, &self.this)];
        runs.extend(other.map(|runner| (&before, runner)));
        if round.is_multiple_of(2) {
            runs.reverse();
        }
        let run = |(case, runner): (&Case, &Runner)| (case.name.clone(), runner.run(case, round));
        runs.into_iter().map(run).collect()
    }
}
