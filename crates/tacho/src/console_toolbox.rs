//! The program as the console sees it.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use tacho_bus::Bus;
use tacho_console::{
    RepeatFrom, ToolInspection, ToolPreview, ToolProblem, ToolRemark, ToolRepeat, ToolText, Toolbox,
};
use tacho_lab::compare::{About, Side, compare, read_side};
use tacho_lab::doctor::examine;
use tacho_record::Timestamp;
use tacho_report::tell_comparison;
use tacho_rig::attached::this_program;
use tacho_scenario::jmx::PlanFile;
use tacho_scenario::published::bifromq;
use tacho_scenario::suite::{SUITES, Suite};
use tacho_scenario::{
    Adjustment, BUILTIN, Builtin, Limits, Scenario, ScenarioError, ScenarioVariable, SourceText,
    jmx,
};

use crate::agents_command;
use crate::bus_arguments::{BusAddress, BusLogin};
use crate::console_preview::{limiting, preview, without_excerpt};
use crate::console_repeat::repeat;
use crate::estimates;

/// The scenario whose needs stand for what a machine is asked for.
const TYPICAL: &str = "symmetric";

/// Scenarios of the guide and of load services, with the names that those have; others are of
/// what happens to connections and sessions.
const STANDARD: [(&str, &str); 7] = [
    ("connect", "Connections"),
    ("symmetric", "One to one"),
    ("fan-in", "Fan-in"),
    ("fan-out", "Fan-out"),
    ("bridge", "Bridge"),
    ("persistent", "Persistent sessions"),
    ("login", "Logins"),
];

/// The program that serves the console.
#[derive(Debug, Default)]
pub(crate) struct ConsoleToolbox {
    /// The bus whose agents it shows.
    pub(crate) bus: Option<ConsoleBus>,
}

/// A bus that is reached once a page asks.
#[derive(Debug)]
pub(crate) struct ConsoleBus {
    address: BusAddress,
    login: BusLogin,
    connected: Mutex<Option<Arc<dyn Bus>>>,
}

impl ConsoleBus {
    pub(crate) fn new(address: BusAddress, login: BusLogin) -> Self {
        Self { address, login, connected: Mutex::default() }
    }

    pub(crate) fn place(&self) -> String {
        self.address.place()
    }

    /// Its connection; one at a time is made.
    fn connect(&self) -> Result<Arc<dyn Bus>, String> {
        let mut connected = self.connected.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bus) = &*connected {
            return Ok(Arc::clone(bus));
        }
        let bus = self.login.connect(&self.address);
        let bus = bus.map_err(|failure| failure.sentence().to_owned())?;
        *connected = Some(Arc::clone(&bus));
        Ok(bus)
    }
}

impl Toolbox for ConsoleToolbox {
    fn preview(&self, arguments: &[String]) -> ToolPreview {
        preview(arguments)
    }

    fn scenarios(&self) -> Value {
        // Those that users know come first.
        let mut all: Vec<&Builtin> = BUILTIN.iter().collect();
        all.sort_by_key(|builtin| {
            STANDARD.iter().position(|(name, _)| *name == builtin.name).unwrap_or(usize::MAX)
        });
        let scenarios: Vec<Value> = all.into_iter().map(scenario).collect();
        let suite = |suite: Suite| {
            json!({"name": suite.name, "summary": suite.description,
                "summary_zh": suite.description_zh, "runs": suite.run_count()})
        };
        let suites: Vec<Value> =
            SUITES.iter().filter_map(|name| Suite::find(name)).map(suite).collect();
        let published: Vec<String> = bifromq().iter().map(|row| row.full_name()).collect();
        json!({"scenarios": scenarios, "suites": suites, "published": published})
    }

    fn inspect(&self, file: &Path) -> ToolInspection {
        inspected(file).unwrap_or_else(|error| ToolInspection {
            problems: vec![said(&error)],
            ..ToolInspection::default()
        })
    }

    fn repeat(
        &self,
        recorded: &[String],
        ran: Option<&str>,
        from: RepeatFrom<'_>,
    ) -> Result<ToolRepeat, String> {
        repeat(recorded, ran, from)
    }

    fn compare(&self, runs: &[PathBuf]) -> Result<Value, String> {
        let side = |(letter, path): (char, &PathBuf)| {
            let shown = path.to_string_lossy();
            let mut side = read_side(&letter.to_string(), &shown)?;
            // Where the folder is says nothing about the run.
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            side.label.clone_from(&name);
            side.runs.iter_mut().for_each(|run| run.shown.clone_from(&name));
            Ok(side)
        };
        let sides: Result<Vec<Side>, _> = ('a'..='z').zip(runs).map(side).collect();
        let sides = sides.map_err(|error: tacho_lab::compare::CompareError| error.to_string())?;
        let about = About {
            name: "compare".to_owned(),
            started_at: Timestamp::now().rfc3339(),
            seed: 1,
            ..About::default()
        };
        let mut comparison = compare(&sides, &about, &[]).map_err(|error| error.to_string())?;
        tell_comparison(&mut comparison);
        // Of the command that serves, which is not what compared them.
        comparison.command_line.clear();
        serde_json::to_value(&comparison).map_err(|error| error.to_string())
    }

    fn bus(&self) -> Option<String> {
        self.bus.as_ref().map(ConsoleBus::place)
    }

    fn agents(&self) -> Result<Value, String> {
        let bus = self.bus.as_ref().ok_or("the console was given no bus: start it with --bus")?;
        let listed = agents_command::listed(&*bus.connect()?);
        listed.map(Value::from).map_err(|error| error.to_string())
    }

    fn examine(&self) -> Vec<ToolRemark> {
        let mut remarks = Vec::new();
        let scenario = Scenario::load(TYPICAL, &[], &Adjustment::NONE, Limits::NONE);
        let needs = scenario.ok().and_then(|scenario| tacho_lab::needs::needs(&scenario).ok());
        let rows = needs.map(|needs| examine(&needs, true)).unwrap_or_default();
        let limits = rows.iter().filter(|row| row.limits);
        remarks.extend(limits.map(|row| ToolRemark { level: "problem", text: limiting(row) }));
        if remarks.is_empty() {
            let text = ToolText::new(
                format!("No setting of this machine limits '{TYPICAL}'."),
                format!("本机没有限制 {TYPICAL} 的设置。"),
            );
            remarks.push(ToolRemark { level: "ok", text });
        }
        remarks.push(match estimates::of_this_machine() {
            Some(calibration) => ToolRemark {
                level: "ok",
                text: ToolText::new(
                    format!("The generator was calibrated here at {}.", calibration.measured_at),
                    format!("负载生成器已于 {} 在本机校准。", calibration.measured_at),
                ),
            },
            None => ToolRemark {
                level: "warning",
                text: ToolText::new(
                    "The generator is not calibrated here: 'tacho calibrate' measures what it can do \
                     in 75 seconds.",
                    "负载生成器尚未在本机校准：tacho calibrate 用 75 秒测出其能力。",
                ),
            },
        });
        remarks
    }

    fn is_calibrated(&self) -> bool {
        estimates::of_this_machine().is_some()
    }

    fn program(&self) -> io::Result<Command> {
        let program = this_program().map_err(|error| io::Error::other(error.to_string()))?;
        Ok(Command::new(program))
    }
}

fn scenario(builtin: &Builtin) -> Value {
    let known = STANDARD.iter().find(|(name, _)| *name == builtin.name);
    let title = known.map_or_else(|| title(builtin.name), |(_, title)| (*title).to_owned());
    let loaded = Scenario::load(builtin.name, &[], &Adjustment::NONE, Limits::NONE).ok();
    let (summary, summary_zh) = loaded
        .map_or_else(Default::default, |scenario| (scenario.description, scenario.description_zh));
    json!({
        "name": builtin.name,
        "title": title,
        "group": if known.is_some() { "standard" } else { "events" },
        "summary": summary,
        "summary_zh": summary_zh,
        "variables": ScenarioVariable::of(&builtin.source()),
    })
}

/// `reconnect-storm` as people write it.
fn title(name: &str) -> String {
    tacho_scenario::format::capitalised(&name.replace('-', " "))
}

/// The variables and groups of a plan or a scenario file, and the data files of a plan.
fn inspected(file: &Path) -> Result<ToolInspection, ScenarioError> {
    let name = file.to_string_lossy();
    let source = SourceText::load(&name)?;
    // What is wrong with the rest hides no variables.
    let groups = groups(&name);
    let problems = groups.as_ref().err().map(said).into_iter().collect();
    let groups = groups.unwrap_or_default();
    if !jmx::is_plan(&name) {
        let variables = json!(ScenarioVariable::of(&source));
        return Ok(ToolInspection { variables, groups, problems, ..Default::default() });
    }
    let survey = jmx::survey(&source)?;
    let plan = file.file_name().unwrap_or_default().to_string_lossy();
    let lacks = |file: &PlanFile| {
        format!(
            "{plan}:{}: '{}' reads {}: upload that file, too",
            file.line, file.element, file.name
        )
    };
    let missing: Vec<String> =
        survey.files.iter().filter(|file| !file.is_there).map(lacks).collect();
    Ok(ToolInspection {
        variables: json!(survey.variables),
        files: json!(survey.files),
        groups,
        problems,
        missing,
    })
}

/// The groups of a scenario.
fn groups(name: &str) -> Result<Value, ScenarioError> {
    let scenario = Scenario::load(name, &[], &Adjustment::NONE, Limits::NONE)?;
    let group = |(name, group): (&String, &tacho_scenario::Group)| json!({"name": name, "virtual_users": group.clients});
    Ok(scenario.groups.iter().map(group).collect())
}

fn said(error: &ScenarioError) -> ToolProblem {
    ToolProblem { flag: None, message: without_excerpt(&error.render(false)) }
}
