//! The losing responder shown to other programs, where they are installed.

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::foreign::{ToolEnd, output_within};
use super::responder::{Fault, ResponderOptions};
use super::runs::Laboratory;
use crate::shell;

/// A program that has not ended by then is stopped: one that waits for lost messages never ends.
pub(super) const SECONDS_MAX: u64 = 45;
/// So many of the last bytes of an output are kept: mqtt-stresser's summary has 1,000.
const SAID_MAX: usize = 4_000;

/// A program that publishes 10,000 messages of QoS 1 to a broker on a port.
struct Tool {
    name: &'static str,
    arguments: fn(u16) -> Vec<String>,
}

const TOOLS: [Tool; 2] = [
    Tool {
        name: "mqtt-stresser",
        arguments: |port| {
            let broker = format!("tcp://127.0.0.1:{port}");
            let rest = ["-num-clients", "10", "-num-messages", "1000", "-publisher-qos", "1"];
            let more = ["-subscriber-qos", "1", "-no-progress", "-timeout", "20s"];
            let mut line = vec!["-broker".to_owned(), broker];
            line.extend(rest.into_iter().chain(more).map(ToOwned::to_owned));
            line
        },
    },
    Tool {
        name: "emqtt_bench",
        arguments: |port| {
            let line = format!("pub -h 127.0.0.1 -p {port} -c 10 -I 1 -t test/%i -q 1 -L 10000");
            line.split(' ').map(ToOwned::to_owned).collect()
        },
    },
];

/// What became of one program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct ToolRun {
    pub(super) name: String,
    /// The end of its output; absent when it is not installed.
    pub(super) said: Option<String>,
    /// How it ended; absent when it is not installed.
    #[serde(default)]
    pub(super) ended: Option<ToolEnd>,
    /// Messages that it published, and those of them that were acknowledged and not delivered.
    pub(super) messages: u64,
    pub(super) lost: u64,
}

impl ToolRun {
    /// A program that is not installed.
    pub(super) fn missing(name: &str) -> Self {
        Self { name: name.to_owned(), said: None, ended: None, messages: 0, lost: 0 }
    }
}

/// All of them, one after the other.
pub(super) fn all(lab: &Laboratory) -> Result<Vec<ToolRun>> {
    TOOLS.iter().map(|tool| show(lab, tool)).collect()
}

fn show(lab: &Laboratory, tool: &Tool) -> Result<ToolRun> {
    let name = tool.name;
    let Some(program) = shell::find(name) else {
        println!("{name}: not installed");
        return Ok(ToolRun::missing(name));
    };
    let fault = Some(Fault::Lose);
    let options = ResponderOptions { fault, fault_every: 100, ..ResponderOptions::default() };
    let responder = lab.responder(&options)?;
    let mut command = shell::command(program);
    let (text, ended) = output_within(command.args((tool.arguments)(responder.port)), SECONDS_MAX)
        .with_context(|| name.to_owned())?;
    let record = responder.finish()?;
    println!("{name}: {ended:?}");
    Ok(ToolRun {
        name: name.to_owned(),
        said: Some(end_of(text.trim()).to_owned()),
        ended: Some(ended),
        messages: record.messages,
        lost: record.lost,
    })
}

fn end_of(text: &str) -> &str {
    let from = text.len().saturating_sub(SAID_MAX);
    let from = (from..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    text.get(from..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_long_output_is_kept() {
        assert_eq!(end_of("short"), "short");
        let long = "é".repeat(SAID_MAX);
        let end = end_of(&long);
        assert!(end.len() <= SAID_MAX && end.len() >= SAID_MAX - 1 && long.ends_with(end));
    }

    #[test]
    fn tools_are_pointed_at_the_responder() {
        for tool in &TOOLS {
            let line = (tool.arguments)(4_711).join(" ");
            assert!(line.contains("127.0.0.1") && line.contains("4711"), "{line}");
        }
    }
}
