//! The plans, made ready for JMeter and for Tacho alike.

use std::fs;
use std::path::{Path, PathBuf};

use libtest_mimic::Failed;

/// A plan.
#[derive(Clone, Copy)]
pub(super) struct Plan {
    pub(super) name: &'static str,
    /// Where it is.
    folder: &'static str,
    /// The QoS that its variable gets, one after the other.
    pub(super) qos: &'static [u8],
    per_second: u32,
    pub(super) clients: usize,
    pub(super) publishers: usize,
    /// Between two brokers.
    pub(super) is_bridged: bool,
    /// Does it say how many messages there are?
    pub(super) is_finite: bool,
}

const FOR_SCENARIOS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../scenario/tests/fixtures");
const OWN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/jmeter");

const PAIRS: Plan = Plan {
    name: "pairs",
    folder: FOR_SCENARIOS,
    qos: &[0, 1, 2],
    per_second: 100,
    clients: 20,
    publishers: 10,
    is_bridged: false,
    is_finite: false,
};

/// The guide's four kinds, and one with rows of a file and a number of loops.
pub(super) const ALL: [Plan; 5] = [
    PAIRS,
    Plan { name: "team", per_second: 200, clients: 28, publishers: 20, ..PAIRS },
    Plan { name: "crowd", per_second: 20, clients: 44, publishers: 4, ..PAIRS },
    Plan { name: "bridged", is_bridged: true, ..PAIRS },
    Plan {
        name: "rows",
        folder: OWN,
        per_second: 0,
        clients: 7,
        publishers: 6,
        is_finite: true,
        ..PAIRS
    },
];

impl Plan {
    /// What a recording is called.
    pub(super) fn case(&self, qos: u8) -> String {
        format!("{} QoS {qos}", self.name)
    }

    /// JMeter loads classes for more than a second. At QoS 0 clients take so long to come that it
    /// shows how they come.
    pub(super) fn shows_ramp(&self, qos: u8) -> bool {
        qos == 0 && !self.is_finite
    }

    /// How long they take.
    pub(super) fn ramp_s(&self, qos: u8) -> u32 {
        if self.shows_ramp(qos) { 6 } else { 1 }
    }

    /// A copy in `folder` for a port and a QoS, beside the files that it reads. XMeter's own
    /// functions, which JMeter does not know, have their values; the fixtures lack an attribute
    /// about windows, without which JMeter reads no plan.
    pub(super) fn prepared(&self, folder: &Path, port: u16, qos: u8) -> Result<PathBuf, Failed> {
        let mut text = fs::read_to_string(self.file("jmx"))?;
        for (name, value) in [("port", port.to_string()), ("q", qos.to_string())] {
            text = with_variable(&text, name, &value)?;
        }
        if !self.is_finite {
            text = with_variable(&text, "ramp", &self.ramp_s(qos).to_string())?;
        }
        if self.is_bridged {
            text = with_variable(&text, "node2", "127.0.0.2")?;
        }
        let per_minute = (self.per_second * 60).to_string();
        let text = text
            .replace("${__xmeterThroughput(${per_second}, SEC)}", &per_minute)
            .replace("${__machineName()}", "m1")
            .replace(" testclass=\"", " guiclass=\"none\" testclass=\"");
        let prepared = folder.join(format!("{}.jmx", self.name));
        fs::write(&prepared, text)?;
        let rows = self.file("csv");
        if rows.is_file() {
            fs::copy(rows, folder.join(format!("{}.csv", self.name)))?;
        }
        Ok(prepared)
    }

    fn file(&self, ending: &str) -> PathBuf {
        Path::new(self.folder).join(format!("{}.{ending}", self.name))
    }
}

/// The plan with another value of a variable.
fn with_variable(text: &str, name: &str, value: &str) -> Result<String, Failed> {
    let named = format!("<stringProp name=\"Argument.name\">{name}</stringProp>");
    let opening = "<stringProp name=\"Argument.value\">";
    let parts = text.split_once(&named).and_then(|(before, rest)| {
        let (between, rest) = rest.split_once(opening)?;
        let (_, after) = rest.split_once('<')?;
        Some(format!("{before}{named}{between}{opening}{value}<{after}"))
    });
    parts.ok_or_else(|| format!("no variable {name}").into())
}
