//! `tacho scenario`: lists, shows and checks scenarios.

use clap::{Args, Subcommand};
use tacho_lab::calibration::Calibration;
use tacho_lab::fit::{Factors, Room, fit};
use tacho_record::Obstacle;
use tacho_report::Lang;
use tacho_scenario::format::{rate, thousands};
use tacho_scenario::jmx;
use tacho_scenario::suite::{AsPublished, Misprint, SUITES, Suite};
use tacho_scenario::{
    Adjustment, BENCHMARK_GRAMMAR, BUILTIN, Limits, Scenario, ScenarioError, Shortage, SourceText,
    TimeSpan,
};

use crate::estimates;
use crate::exit::{self, Failure};
use crate::plan_arguments::PlanArguments;

#[derive(Debug, Args)]
pub(crate) struct ScenarioArguments {
    #[command(subcommand)]
    command: ScenarioCommand,
}

#[derive(Debug, Subcommand)]
enum ScenarioCommand {
    /// List the built-in scenarios and suites
    List,
    /// Print the text of a scenario, as a start for your own
    ///
    /// A JMeter plan is printed as the scenario it translates to.
    Show {
        /// Name of a built-in scenario or a suite, a name such as 1k_1k_qos1_p32_10mps, or a file
        scenario: String,
        /// Print the runs of a suite as JSON, each with its load and the resources missing here
        #[arg(long)]
        json: bool,
    },
    /// Print the JSON schema of scenario files, for editors
    Schema,
    /// Print the reference of scenario files: every key, and the variables of built-in scenarios
    Reference,
    /// Check a scenario and print it resolved: variables replaced, defaults spelled out
    ///
    /// Needs and offered load go to standard error, so that standard output is a scenario.
    Check {
        /// Name of a built-in scenario, a name such as 1k_1k_qos1_p32_10mps, or a file
        scenario: String,
        /// Set a variable of the scenario; may be given several times
        #[arg(long = "var", value_name = "NAME=VALUE", value_parser = parse_var)]
        vars: Vec<(String, String)>,
        #[command(flatten)]
        adjust: AdjustArguments,
    },
}

/// Factors and lengths that change a scenario.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct AdjustArguments {
    /// Multiply every publish rate by this factor
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0,
          value_parser = Adjustment::parse_factor)]
    scale: f64,

    /// Multiply the clients of every group, and the virtual load machines, by this factor
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0,
          value_parser = Adjustment::parse_factor)]
    scale_clients: f64,

    /// Length of the measured phase, instead of the scenario's
    #[arg(long, visible_alias = "duration", value_name = "TIME",
          value_parser = Adjustment::parse_hold)]
    pub(crate) hold: Option<TimeSpan>,

    /// Length of the warm-up, which is not counted, instead of the scenario's
    #[arg(long, value_name = "TIME", value_parser = TimeSpan::parse)]
    warmup: Option<TimeSpan>,

    #[command(flatten)]
    plan: PlanArguments,
}

impl AdjustArguments {
    /// The same with other factors of clients and rates.
    pub(crate) fn scaled(self, scale_clients: f64, scale: f64) -> Self {
        Self { scale_clients, scale, ..self }
    }

    /// The same with the lengths that a report used.
    pub(crate) fn as_published(self, AsPublished { hold, ramp_up }: AsPublished) -> Self {
        Self { hold: Some(hold), plan: self.plan.ramped_up(ramp_up), ..self }
    }

    /// The adjustment that the arguments ask for.
    pub(crate) fn adjustment(self) -> Adjustment {
        Adjustment {
            scale: self.scale,
            scale_clients: self.scale_clients,
            hold: self.hold,
            warmup: self.warmup,
            ..self.plan.adjustment()
        }
    }
}

pub(crate) fn scenario(arguments: &ScenarioArguments) -> Result<u8, Failure> {
    match &arguments.command {
        ScenarioCommand::List => list()?,
        ScenarioCommand::Show { scenario, json } => show(scenario, *json)?,
        ScenarioCommand::Schema => {
            let schema = serde_json::to_string_pretty(&tacho_scenario::schema());
            println!("{}", schema.map_err(|error| Failure::new(exit::UNEXPECTED, error))?);
        }
        ScenarioCommand::Reference => print!("{}", tacho_scenario::reference()),
        ScenarioCommand::Check { scenario, vars, adjust } => {
            let (name, calibration) = (scenario, estimates::of_this_machine());
            let mut scenario = load(name, vars, &adjust.adjustment())?;
            scenario.forget_shared_addresses(|_| false);
            let lacks = lacks((name, vars), *adjust, &scenario, calibration.as_ref());
            if let Some(lacks) = lacks.as_ref().filter(|lacks| is_about_clients(lacks)) {
                return Err(too_large(name, lacks));
            }
            tell_misprint(name);
            eprint!("{}", needs(&scenario, calibration.as_ref(), lacks.as_ref())?);
            scenario.notes.iter().for_each(|note| eprintln!("note: {note}"));
            print!("{}", scenario.to_toml());
        }
    }
    Ok(exit::OK)
}

fn list() -> Result<(), Failure> {
    for builtin in BUILTIN {
        // A scenario too large for this machine is listed, too.
        let scenario = Scenario::load(builtin.name, &[], &Adjustment::NONE, Limits::NONE);
        let scenario = scenario.map_err(|error| failure(&error))?;
        println!("{:<14} {}", builtin.name, scenario.description);
    }
    println!("\nby name: {BENCHMARK_GRAMMAR}");
    println!("{:<14} such as 1.2k_1.2k_qos2_p32_100mps or false_share_5k_50_qos0_p1024_1mps", "");
    println!("\nsuites:");
    for suite in SUITES.iter().filter_map(|name| Suite::find(name)) {
        println!("{:<14} {} {} runs.", suite.name, suite.description, suite.run_count());
    }
    Ok(())
}

fn show(name: &str, json: bool) -> Result<(), Failure> {
    let Some(suite) = Suite::find(name) else {
        if json {
            let why = format!(
                "--json applies to suites only ({}), and '{name}' is not a suite",
                SUITES.join(", ")
            );
            return Err(Failure::new(exit::INVALID_CONFIG, why));
        }
        let mut source = SourceText::load(name).map_err(|error| failure(&error))?;
        if jmx::is_plan(name) {
            let translation = jmx::translate(&source, &[], &Adjustment::NONE);
            source = translation.map_err(|error| failure(&error))?.source;
        }
        print!("{}", source.text);
        return Ok(());
    };
    if json {
        let text = serde_json::to_string_pretty(&suite_runs(&suite)?);
        println!("{}", text.map_err(|error| Failure::new(exit::UNEXPECTED, error))?);
        return Ok(());
    }
    println!("# {}: {}", suite.name, suite.description);
    for series in &suite.series {
        println!("{}: {}", series.figure, series.label);
        for point in &series.points {
            let vars = point.vars.iter().map(|(name, value)| format!(" --var {name}={value}"));
            println!("  tacho run {}{}", series.scenario, vars.collect::<String>());
        }
    }
    Ok(())
}

/// A suite as JSON: each run with its needs, its load, and the resources missing here.
fn suite_runs(suite: &Suite) -> Result<serde_json::Value, Failure> {
    let limits = Limits::of_this_process();
    let mut value = serde_json::json!(suite);
    for (index, series) in suite.series.iter().enumerate() {
        for (at, point) in series.points.iter().enumerate() {
            let none = Adjustment::NONE;
            let scenario = Scenario::load(&series.scenario, &point.vars, &none, Limits::NONE);
            let scenario = scenario.map_err(|error| failure(&error))?;
            let needs = tacho_lab::needs::needs(&scenario)
                .map_err(|error| Failure::new(exit::INVALID_CONFIG, error))?;
            let shortages = needs.shortages(&limits, true, generator_cores(&limits));
            let lacks: Vec<String> = shortages.iter().map(ToString::to_string).collect();
            let lacks = (!lacks.is_empty()).then(|| lacks.join("; "));
            value["series"][index]["points"][at]["needs"] = serde_json::json!({
                "clients": needs.clients,
                "descriptors": needs.descriptors,
                "in_per_s": needs.in_per_s,
                "out_per_s": needs.out_per_s,
                "bridged": needs.bridged,
            });
            value["series"][index]["points"][at]["lacks"] = serde_json::json!(lacks);
        }
    }
    Ok(value)
}

/// Cores of the generator with the broker on the same machine.
fn generator_cores(limits: &Limits) -> u64 {
    (limits.cores / 2).max(1)
}

/// What this machine lacks for a scenario, with the broker on it, too.
fn lacks(
    (name, vars): (&str, &[(String, String)]),
    adjust: AdjustArguments,
    scenario: &Scenario,
    calibration: Option<&Calibration>,
) -> Option<Obstacle> {
    let limits = Limits::of_this_process();
    let room = Room {
        limits,
        one_machine: true,
        generator_cores: generator_cores(&limits),
        calibration,
        beyond_calibration: false,
    };
    let asked = Factors { clients: adjust.scale_clients, rates: adjust.scale };
    let rescale = |Factors { clients, rates }: Factors| {
        let adjustment = adjust.scaled(clients, rates).adjustment();
        Scenario::load(name, vars, &adjustment, Limits::NONE).ok()
    };
    fit(scenario, &room, (asked, &rescale)).err()
}

/// Does the machine lack something for the clients, whatever they send?
fn is_about_clients(obstacle: &Obstacle) -> bool {
    let is_of_cores = |shortage: &Shortage| matches!(shortage, Shortage::Cores { .. });
    match obstacle {
        Obstacle::Lacks { shortages, .. } => !shortages.iter().all(is_of_cores),
        Obstacle::BrokerGone | Obstacle::Message(_) => true,
    }
}

/// The needs of a scenario, line by line.
fn needs(
    scenario: &Scenario,
    calibration: Option<&Calibration>,
    lacks: Option<&Obstacle>,
) -> Result<String, Failure> {
    let needs = tacho_lab::needs::estimate(scenario, estimates::costs(calibration));
    let needs = needs.map_err(|error| Failure::new(exit::INVALID_CONFIG, error))?;
    let mut lines = vec![
        format!(
            "{} clients, {} subscriptions, {} connections; {} descriptors are needed",
            thousands(needs.clients),
            thousands(needs.subscriptions),
            thousands(needs.clients),
            thousands(needs.descriptors)
        ),
        format!(
            "in {}/s, out {}/s; {} pairs of a publisher and a receiver of all its messages",
            rate(needs.in_per_s),
            rate(needs.out_per_s),
            thousands(needs.routes)
        ),
    ];
    if needs.generator_cores > 0.0 {
        let source = Lang::En.core_rates(&estimates::rates(calibration));
        let cores = needs.generator_cores;
        lines.push(format!("about {cores:.2} cores of the generator (rate per core: {source})"));
    }
    if needs.closed {
        lines.push("plus the closed-loop messages that the broker accepts".to_owned());
    }
    if needs.bridged {
        let known: Vec<String> = scenario
            .targets_in_use()
            .into_iter()
            .filter_map(|(name, target)| Some(format!("{name} at {}", target.broker.as_ref()?)))
            .collect();
        lines.push(match known.is_empty() {
            true => "brokers that are bridged to each other; without arguments the run starts them"
                .to_owned(),
            false => {
                format!("brokers that run and are bridged to each other: {}", known.join(", "))
            }
        });
    }
    if let Some(lacks) = lacks {
        let lacks = Lang::En.obstacle(lacks);
        lines.push(format!("this machine, with the broker on it too: {lacks}"));
    }
    Ok(lines.iter().map(|line| format!("{line}\n")).collect())
}

/// Tells on standard error that a report prints `name` and means another row.
pub(crate) fn tell_misprint(name: &str) {
    if let Some(misprint) = Misprint::of(name) {
        let (why, meant) = (Lang::En.misprint(misprint), misprint.meant);
        eprintln!("note: {why}. This is the load of the name as written; that row is '{meant}'");
    }
}

/// Splits `name=value`.
pub(crate) fn parse_var(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("write name=value".to_owned()),
    }
}

/// Parses and checks a scenario, whether or not this machine can run it.
fn load(
    name: &str,
    vars: &[(String, String)],
    adjustment: &Adjustment,
) -> Result<Scenario, Failure> {
    Scenario::load(name, vars, adjustment, Limits::NONE).map_err(|error| failure(&error))
}

pub(crate) fn failure(error: &ScenarioError) -> Failure {
    use std::io::IsTerminal as _;
    Failure { code: exit::INVALID_CONFIG, message: error.render(std::io::stderr().is_terminal()) }
}

/// The refusal of a scenario for want of what this machine lacks.
pub(crate) fn too_large(name: &str, obstacle: &Obstacle) -> Failure {
    let lacks = Lang::En.obstacle(obstacle);
    let sentence = match obstacle {
        Obstacle::Lacks { .. } => format!("this machine cannot run '{name}' as it is: it {lacks}"),
        Obstacle::BrokerGone | Obstacle::Message(_) => lacks,
    };
    Failure::new(exit::INVALID_CONFIG, sentence)
}
