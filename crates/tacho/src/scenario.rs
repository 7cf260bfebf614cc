//! `tacho scenario`: lists, shows and checks scenarios.

use clap::{Args, Subcommand};
use tacho_report::Lang;
use tacho_scenario::format::{rate, thousands};
use tacho_scenario::jmx;
use tacho_scenario::suite::{SUITES, Suite};
use tacho_scenario::{
    Adjustment, BENCHMARK_GRAMMAR, BUILTIN, Limits, Scenario, ScenarioError, SourceText, TimeSpan,
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
            let mut scenario = load(scenario, vars, &adjust.adjustment())?;
            scenario.forget_shared_addresses(|_| false);
            eprint!("{}", needs(&scenario)?);
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
            let lacks = needs.shortage(&limits, true).map(|shortage| shortage.to_string());
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

/// The needs of a scenario, line by line.
fn needs(scenario: &Scenario) -> Result<String, Failure> {
    let calibration = estimates::of_this_machine();
    let needs = tacho_lab::needs::estimate(scenario, estimates::costs(calibration.as_ref()));
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
        let source = Lang::En.core_rates(&estimates::rates(calibration.as_ref()));
        let cores = needs.generator_cores;
        lines.push(format!("about {cores:.2} cores of the generator (rates per core: {source})"));
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
    if let Some(shortage) = needs.shortage(&Limits::of_this_process(), true) {
        lines.push(format!("this machine, with the broker on it too: {shortage}"));
    }
    Ok(lines.iter().map(|line| format!("{line}\n")).collect())
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

/// Parses and checks a scenario.
pub(crate) fn load(
    name: &str,
    vars: &[(String, String)],
    adjustment: &Adjustment,
) -> Result<Scenario, Failure> {
    Scenario::load(name, vars, adjustment, Limits::of_this_process()).map_err(|e| failure(&e))
}

pub(crate) fn failure(error: &ScenarioError) -> Failure {
    use std::io::IsTerminal as _;
    Failure { code: exit::INVALID_CONFIG, message: error.render(std::io::stderr().is_terminal()) }
}
