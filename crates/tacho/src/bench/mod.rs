//! `tacho bench`: scenarios made of the flags that users of emqtt_bench and mqttx have in their
//! fingers.

mod arguments;
mod scenario;

use tacho_scenario::{Password, SourceText};

pub(crate) use arguments::BenchArguments;
use arguments::{BenchCommand, BenchConnection};

use crate::exit::{self, Failure};
use crate::run_command;

/// Runs the scenario, or shows it; the exit code.
pub(crate) fn bench(arguments: &BenchArguments) -> Result<u8, Failure> {
    let connection = arguments.command.connection();
    let text = scenario::text(&arguments.command)?;
    if connection.show {
        print!("{text}");
        return Ok(exit::OK);
    }
    let name = scenario::name(&arguments.command);
    let flags = flags(connection)?;
    eprintln!(
        "{name} is a scenario now, which the run's directory keeps as scenario.toml: --show prints \
         it, and 'tacho run FILE' runs it with changes."
    );
    let password = connection.password.clone().map(Password::text);
    let outcome = run_command::run_text(SourceText::new(name, &text), password, &flags)?;
    if let (BenchCommand::Sub(_), Some(step)) = (&arguments.command, &outcome.step) {
        let per_s = step.unexpected as f64 / step.window_s.max(f64::MIN_POSITIVE);
        eprintln!("received: {} messages of other programs, {per_s:.0}/s", step.unexpected);
    }
    Ok(outcome.code)
}

/// Flags of `tacho run`.
fn flags(connection: &BenchConnection) -> Result<Vec<String>, Failure> {
    let mut flags = vec!["--broker".to_owned(), connection.target()?];
    let mut give = |flag: &str, value: Option<String>| {
        flags.extend(value.into_iter().flat_map(|value| [flag.to_owned(), value]));
    };
    let path = |path: &Option<std::path::PathBuf>| path.as_ref().map(|p| p.display().to_string());
    give("--username", connection.username.as_deref().map(|user| scenario::template(user, "", 0)));
    give("--password-file", path(&connection.password_file));
    give("--ca", path(&connection.ca));
    give("--cert", path(&connection.cert));
    give("--key", path(&connection.key));
    give("--source-address", connection.source_address.clone());
    flags.extend(connection.insecure.then(|| "--insecure".to_owned()));
    flags.extend(connection.run.iter().cloned());
    Ok(flags)
}
