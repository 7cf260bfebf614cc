//! How a campaign begins and ends: the process, the result's directory, the live page, the record.

use std::path::{Path, PathBuf};

use tacho_console::SourceFile;
use tacho_lab::campaign::{CampaignAbout, CampaignEnd, Driver, Finished, Subject};
use tacho_lab::run::Ending;
use tacho_record::{RunDirectory, RunKind, Verdict};
use tacho_report::{campaign_text, write_run};
use tacho_scenario::{Adjustment, Builtin, Limits, Scenario};

use super::bench::ArgumentBench;
use super::code_of;
use crate::exit::{self, Failure};
use crate::run::{OutputArguments, Setting, TargetArguments, show};

/// A campaign whose runs can be made.
pub(crate) struct Opened<'a> {
    bench: ArgumentBench<'a>,
    output: &'a OutputArguments,
    /// The directory, until the driver takes it.
    path: PathBuf,
    kind: RunKind,
    run_name: String,
    /// The scenario or suite.
    subject: Subject<'a>,
}

/// The brokers of one side, and the scenario of its first run.
pub(crate) type Side<'a> = (&'a TargetArguments, &'a Scenario);

impl<'a> Opened<'a> {
    /// Takes over the process and creates the directory. The brokers of the first run of each side
    /// must be there.
    pub(crate) fn begin(
        kind: RunKind,
        subject: Subject<'a>,
        sides: &[Side<'a>],
        output: &'a OutputArguments,
    ) -> Result<Self, Failure> {
        // Invariant: there is one side at least.
        let [(targets, first), ..] = sides else {
            return Err(Failure::new(exit::UNEXPECTED, "there is nothing to run"));
        };
        let page = output.ui.wish()?;
        let mut setting = Setting::new(targets, output.quiet)?;
        setting.report_in(output.lang);
        if kind == RunKind::Suite {
            setting.for_several();
        }
        // A broker that is not there, or cores that do not exist: before anything is created.
        match sides.len() {
            1 => drop(setting.targets(first)?),
            _ => setting.divide_for(sides)?,
        }
        let run_name = match kind {
            RunKind::Comparison => format!("compare-{}", subject.name),
            _ => subject.name.to_owned(),
        };
        let run_name = output.run_name(&run_name);
        let path = output.dir.clone().unwrap_or_else(|| PathBuf::from("runs").join(&run_name));
        setting.serve(page, (&run_name, kind), &path)?;
        output.check_place(&path)?;
        setting.open_outputs(&output.out)?;
        let directory = output.create(&path)?;
        setting.announce(&directory, (subject.name, kind))?;
        let written = directory.write_scenario(&first.to_toml());
        written.map_err(|error| Failure::new(exit::UNEXPECTED, error))?;
        let sides = sides.iter().map(|(targets, _)| *targets).collect();
        let bench = ArgumentBench::new(setting, sides, output.quiet);
        Ok(Self { bench, output, path, kind, run_name, subject })
    }

    /// Keeps the scenario file in the record, which else has the steps only: so the campaign can be
    /// made again. Does nothing for scenarios that come with the program.
    pub(crate) fn keep_source(&self, scenario: &str) -> Result<(), Failure> {
        let path = Path::new(scenario);
        if Builtin::find(scenario).is_some() || !path.is_file() {
            return Ok(());
        }
        let own = Scenario::load(scenario, &[], &Adjustment::NONE, Limits::NONE).ok();
        let may_be_kept = own.is_some_and(|own| !own.has_password_in_text());
        let text = may_be_kept.then(|| std::fs::read_to_string(path).ok()).flatten();
        let written = SourceFile::new(path, text).write(&self.path);
        written.map_err(|error| {
            let directory = self.path.display();
            Failure::new(exit::UNEXPECTED, format!("cannot write to {directory}: {error}"))
        })
    }

    /// What makes the runs.
    pub(crate) fn driver(&mut self) -> Driver<'_> {
        let Self { kind, subject, .. } = *self;
        let about = CampaignAbout { kind, name: &self.run_name, subject };
        Driver::new(&mut self.bench, &about, RunDirectory::existing(&self.path))
    }

    /// Writes the record and the report, prints the table; the exit code.
    pub(crate) fn end(mut self, mut finished: Finished) -> Result<u8, Failure> {
        self.write(&mut finished)?;
        show(self.output, &finished.data.record, &finished.directory, campaign_text)?;
        Ok(self.conclude(&finished))
    }

    /// Writes the record and the report.
    pub(crate) fn write(&mut self, finished: &mut Finished) -> Result<(), Failure> {
        finished.data.record.given = self.output.given();
        let written = write_run(&finished.directory, &mut finished.data, self.output.lang);
        written.map_err(|error| Failure::new(exit::UNEXPECTED, error))
    }

    /// Ends the live page; returns the exit code.
    pub(crate) fn conclude(mut self, finished: &Finished) -> u8 {
        let record = &finished.data.record;
        if let CampaignEnd::Failed(error) | CampaignEnd::Stopped { failed: Some(error) } =
            &finished.end
        {
            eprintln!("error: {error}");
        }
        self.bench.conclude(Some(record));
        match &finished.end {
            CampaignEnd::Stopped { .. } => exit::ABORTED,
            CampaignEnd::Failed(error) => code_of(error),
            CampaignEnd::Completed { forgiven } => match (record.verdict, forgiven) {
                (Verdict::Aborted, Some(error)) => code_of(error),
                (verdict, _) => exit::code_of(verdict, &Ending::Completed),
            },
        }
    }
}
