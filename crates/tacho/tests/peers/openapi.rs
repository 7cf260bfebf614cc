//! A validator of OpenAPI reads the descriptions of both APIs.

use std::fs;
use std::process::{Command, Stdio};

use libtest_mimic::{Failed, Trial};

use crate::broker::Broker;
use crate::process::{Peer, Running};
use crate::{TACHO, Verdict, trial};

const VALIDATE: &str = "import json, sys\n\
                        from openapi_spec_validator import validate\n\
                        validate(json.load(open(sys.argv[1])))\n";

pub(crate) fn register(trials: &mut Vec<Trial>) {
    for (name, test) in [
        ("openapi_of_the_broker_is_valid", of_the_broker as fn() -> Verdict),
        ("openapi_of_the_console_is_valid", of_the_console),
    ] {
        trials.push(trial(name.to_owned(), &[Peer::OpenApi], test));
    }
}

fn of_the_broker() -> Verdict {
    let folder = tempfile::tempdir()?;
    let socket = folder.path().join("broker.sock");
    let socket = socket.to_str().ok_or("a plain name")?;
    let _broker = Broker::tacho_with(&["--management-socket", socket])?;
    let output = Command::new(TACHO).args(["ctl", "--socket", socket, "openapi"]).output()?;
    is_valid(&output.stdout)
}

fn of_the_console() -> Verdict {
    let folder = tempfile::tempdir()?;
    let tokens = folder.path().join("tokens");
    fs::write(&tokens, "viewer 0123456789abcdefgh\n")?;
    let mut command = Command::new(TACHO);
    command.args(["serve", "--listen", "0", "--token-file"]).arg(&tokens);
    command.arg("--dir").arg(folder.path());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut console = Running::start(command)?;
    console.wait_for_line(|line| line.contains("http://"))?;
    let address =
        console.last_line().split("http://").nth(1).and_then(|rest| rest.split('/').next());
    let url = format!("http://{}/api/v1/openapi.json", address.ok_or("no address")?);
    let mut answer = ureq::get(&url).header("authorization", "Bearer 0123456789abcdefgh").call()?;
    is_valid(answer.body_mut().read_to_vec()?.as_slice())
}

fn is_valid(document: &[u8]) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("openapi.json");
    fs::write(&file, document)?;
    let mut command = Peer::OpenApi.command()?;
    command.args(["-c", VALIDATE]).arg(&file);
    Running::start(command)?.succeed().map(drop)
}
