//! Every built-in scenario, small, with what must come of it: for any broker.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::is_fair;

/// A scenario at small size.
#[derive(Clone, Copy)]
pub struct Small {
    /// A name, or the path of a JMeter plan.
    pub scenario: &'static str,
    pub vars: &'static [&'static str],
    pub clients: u64,
    /// Messages in the measured two seconds.
    pub sent: u64,
    pub received: u64,
}

/// All of them but the one that needs two brokers.
pub const SMALL: [Small; 9] = [
    Small {
        scenario: "symmetric",
        vars: &["publishers=10", "subscribers=10", "qos=2", "target_throughput=100"],
        clients: 20,
        sent: 200,
        received: 200,
    },
    Small {
        scenario: "fan-in",
        vars: &["publishers=10", "subscribers=4", "machines=2", "target_throughput=100"],
        clients: 14,
        sent: 200,
        received: 200,
    },
    Small {
        scenario: "fan-out",
        vars: &["publishers=2", "subscribers=20", "machines=2", "target_throughput=10"],
        clients: 22,
        sent: 20,
        received: 200,
    },
    Small {
        scenario: "connect",
        vars: &["connections=50", "connect_rate=100/s"],
        clients: 50,
        sent: 0,
        received: 0,
    },
    Small {
        scenario: "persistent",
        vars: &["sessions=10", "rate=10"],
        clients: 20,
        sent: 200,
        received: 200,
    },
    Small { scenario: "10_10_qos1_p64_10mps", vars: &[], clients: 20, sent: 200, received: 200 },
    Small { scenario: "2_10_qos0_p32_10mps", vars: &[], clients: 12, sent: 40, received: 200 },
    Small { scenario: "true_6_2_qos2_p1k_10mps", vars: &[], clients: 8, sent: 120, received: 120 },
    Small {
        scenario: "false_share_10_3_qos1_p64_10mps",
        vars: &[],
        clients: 13,
        sent: 200,
        received: 200,
    },
];

impl Small {
    /// Runs it with further `arguments` and checks that all came of it that must; its record.
    pub fn run(&self, program: &str, arguments: &[&str]) -> Result<Value, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        self.run_in(program, folder.path(), arguments)
    }

    /// The same with its files in a folder.
    pub fn run_in(
        &self,
        program: &str,
        folder: &Path,
        arguments: &[&str],
    ) -> Result<Value, String> {
        let mut command = Command::new(program);
        command.args(["run", self.scenario, "--quiet", "--hold", "2s"]).args(arguments);
        let short = match self.scenario {
            "connect" => &[][..],
            _ => &["--ramp-up", "500ms", "--warmup", "500ms"],
        };
        command.args(short).args(self.vars.iter().flat_map(|var| ["--var", var]));
        command.arg("--dir").arg(folder).stdin(Stdio::null());
        let output = command.output().map_err(|error| error.to_string())?;
        let said = String::from_utf8_lossy(&output.stderr);
        let record = read(folder).ok_or_else(|| format!("no record; it said {said}"))?;
        match self.check(&record) {
            Ok(()) => Ok(record),
            Err(complaint) => Err(format!(
                "{}: {complaint}\n{}: {said}\n{record:#}",
                self.scenario, output.status
            )),
        }
    }

    fn check(&self, record: &Value) -> Result<(), String> {
        // A shared machine may slow both sides; that all came in the end is what counts here.
        if !is_fair(record) {
            return Err(format!("the verdict is {}", record["verdict"]));
        }
        let step = &record["steps"][0];
        for (what, found, wanted) in [
            ("clients_connected", &record["clients_connected"], self.clients),
            ("sent", &step["sent"], self.sent),
            ("received", &step["received"], self.received),
            ("lost", &step["lost"], 0),
            ("duplicates", &step["duplicates"], 0),
            ("out_of_order", &step["out_of_order"], 0),
        ] {
            if found.as_u64() != Some(wanted) {
                return Err(format!("{what} is {found}, not {wanted}"));
            }
        }
        Ok(())
    }
}

fn read(directory: &Path) -> Option<Value> {
    let text = std::fs::read_to_string(directory.join("summary.json")).ok()?;
    serde_json::from_str(&text).ok()
}
