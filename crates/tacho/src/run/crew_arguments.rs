//! Arguments about the processes that make the load.

use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum};
use tacho_lab::agents::{Fleet, Wanted, Weights};
use tacho_load::division::{OnLoss, PairPlacement};
use tacho_scenario::TimeSpan;

use crate::bus_arguments::{BusAddress, BusLogin};
use crate::exit::{self, Failure};

/// Agents that make the load, and the bus that they are on.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Agents")]
pub(crate) struct CrewArguments {
    /// Have agents make the load: N of those on the bus, LABEL=VALUE:N of those with a label (may
    /// be given several times), or local:N new ones on this machine, which need no bus
    ///
    /// Each client with its schedule is on one agent; counts, rates and verdicts are those of a run
    /// without agents. See docs/agents.md.
    #[arg(long, value_name = "AGENTS")]
    agents: Vec<AgentsArgument>,

    /// The bus of the agents: a NATS server with JetStream, nats://HOST:PORT or tls://HOST:PORT
    #[arg(long, value_name = "URL", requires = "agents")]
    bus: Option<BusAddress>,

    /// Start the agents with this shell command, once for each of N with its number in place of
    /// {i}; whatever it started ends with the run, also when the run is killed
    ///
    /// For example 'ssh -tt load-{i} tacho agent --quiet --bus ... --allow-target ...'.
    #[arg(long, value_name = "COMMAND", requires = "bus")]
    provision: Option<String>,

    /// What becomes of a run that loses an agent under load: 'continue' without its share, degraded
    /// and with exit code 111, or 'end'
    #[arg(long, value_name = "WHAT", value_enum, default_value_t, requires = "agents")]
    on_agent_loss: OnAgentLoss,

    /// Where clients that exchange messages are: on the 'same' agent where possible, on 'any', or
    /// publishers and receivers 'split' over different ones
    #[arg(long, value_name = "WHERE", value_enum, default_value_t, requires = "agents")]
    agent_placement: AgentPlacement,

    /// Divide the clients in proportion to the agents' generator 'threads', to all alike ('equal'),
    /// or to what each carries by 'tacho calibrate' on its machine ('calibrated')
    #[arg(long, value_name = "WEIGHTS", value_enum, default_value_t, requires = "agents")]
    agent_weights: AgentWeights,

    /// How long agents of a bus keep the load of a run whose controller is gone, so that 'tacho run
    /// --resume' can take it up; then they stop by themselves. 0s: they stop after 5 s
    ///
    /// A run ends with its controller in any case if it has started its broker or its agents, has
    /// timed commands, or is one of several.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = TimeSpan::parse,
          requires = "bus")]
    resume_within: TimeSpan,

    #[command(flatten)]
    pub(super) login: BusLogin,
}

/// Where clients that exchange messages are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum AgentPlacement {
    #[default]
    Same,
    Any,
    Split,
}

/// How the clients are divided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum AgentWeights {
    #[default]
    Threads,
    Equal,
    Calibrated,
}

/// What becomes of a run that loses an agent under load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum OnAgentLoss {
    #[default]
    Continue,
    End,
}

/// One `--agents`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum AgentsArgument {
    /// So many processes of this machine.
    Local(usize),
    /// Agents of the bus.
    OnBus(Wanted),
}

/// Which agents make the load.
#[derive(Clone, Copy, Debug)]
pub(super) enum CrewChoice<'a> {
    /// So many processes of this machine.
    Local(usize),
    /// Agents of this bus.
    OnBus(&'a BusAddress),
}

impl FromStr for AgentsArgument {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix("local:") {
            None => text.parse().map(Self::OnBus),
            Some(count) => match count.parse() {
                Ok(count @ 1..=64) => Ok(Self::Local(count)),
                _ => Err("local:N takes 1 to 64 agents".to_owned()),
            },
        }
    }
}

impl CrewArguments {
    /// The choice; `None` if this process makes the load.
    pub(super) fn choice(&self) -> Result<Option<CrewChoice<'_>>, Failure> {
        let complain = |sentence: &str| Err(Failure::new(exit::INVALID_CONFIG, sentence));
        match (&self.agents[..], &self.bus) {
            ([], _) => Ok(None),
            ([AgentsArgument::Local(count)], None) => Ok(Some(CrewChoice::Local(*count))),
            ([AgentsArgument::Local(_)], Some(_)) => {
                complain("--agents local:N starts agents of its own, which need no --bus")
            }
            (all, _) if all.iter().any(|one| matches!(one, AgentsArgument::Local(_))) => {
                complain("--agents local:N is given alone")
            }
            (_, Some(bus)) => Ok(Some(CrewChoice::OnBus(bus))),
            (_, None) => complain(
                "--agents needs the --bus that they are on; local:N starts some on this machine",
            ),
        }
    }

    /// How long agents wait for another controller; `None` if they do not.
    pub(super) fn resume_within(&self) -> Option<Duration> {
        (!self.resume_within.0.is_zero()).then_some(self.resume_within.0)
    }

    /// The commands that start the agents, if they are to be started.
    pub(super) fn provisions(&self) -> Vec<String> {
        let count: usize = self.wanted().iter().map(|wanted| wanted.count).sum();
        let of = |template: &String| -> Vec<String> {
            (1..=count).map(|number| template.replace("{i}", &number.to_string())).collect()
        };
        self.provision.as_ref().map(of).unwrap_or_default()
    }

    /// The agents with what the arguments want of them.
    pub(super) fn arrange(&self, fleet: Fleet) -> Fleet {
        let spread = match self.agent_placement {
            AgentPlacement::Same => PairPlacement::Same,
            AgentPlacement::Any => PairPlacement::Any,
            AgentPlacement::Split => PairPlacement::Split,
        };
        let weights = match self.agent_weights {
            AgentWeights::Threads => Weights::Threads,
            AgentWeights::Equal => Weights::Equal,
            AgentWeights::Calibrated => Weights::Calibrated,
        };
        fleet.spread(spread, weights).on_loss(self.on_loss())
    }

    /// What becomes of a run that loses an agent under load.
    const fn on_loss(&self) -> OnLoss {
        match self.on_agent_loss {
            OnAgentLoss::Continue => OnLoss::Continue,
            OnAgentLoss::End => OnLoss::End,
        }
    }

    /// The agents of the bus that are wanted.
    pub(super) fn wanted(&self) -> Vec<Wanted> {
        let wanted = self.agents.iter().filter_map(|one| match one {
            AgentsArgument::Local(_) => None,
            AgentsArgument::OnBus(wanted) => Some(wanted.clone()),
        });
        wanted.collect()
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        crew: CrewArguments,
    }

    fn choice(words: &[&str]) -> Result<&'static str, String> {
        let words = ["run"].iter().chain(words);
        let line = Line::try_parse_from(words).map_err(|error| error.to_string())?;
        match line.crew.choice() {
            Ok(None) => Ok("here"),
            Ok(Some(CrewChoice::Local(_))) => Ok("local"),
            Ok(Some(CrewChoice::OnBus(_))) => Ok("bus"),
            Err(failure) => Err(failure.message),
        }
    }

    #[test]
    fn agents_are_local_or_on_a_bus() {
        let bus = ["--bus", "nats://127.0.0.1"];
        assert_eq!(choice(&[]), Ok("here"));
        assert_eq!(choice(&["--agents", "local:3"]), Ok("local"));
        let both = [&["--agents", "2", "--agents", "region=eu:1"][..], &bus].concat();
        assert_eq!(choice(&both), Ok("bus"));
        let error = |words: &[&str]| choice(words).expect_err("makes no sense");
        assert!(error(&["--agents", "2"]).contains("needs the --bus"));
        assert!(error(&bus).contains("--agents"));
        assert!(error(&[&["--agents", "local:2"][..], &bus].concat()).contains("need no --bus"));
        let mixed = [&["--agents", "local:2", "--agents", "1"][..], &bus].concat();
        assert!(error(&mixed).contains("given alone"));
        let line = ["run", "--agents", "2", "--agents", "a=b:1", "--bus", "nats://a"];
        let line = Line::try_parse_from([&line[..], &["--provision", "on {i}"]].concat());
        assert_eq!(line.expect("parses").crew.provisions(), ["on 1", "on 2", "on 3"]);
        assert!(error(&["--agents", "local:2", "--provision", "x"]).contains("--bus"));
        for bad in ["local:0", "local:65", "local:", "eu:1", "0"] {
            assert!(choice(&["--agents", bad]).is_err(), "{bad}");
        }
        assert!(error(&["--agents", "1", "--bus", "http://a"]).contains("nats://HOST:PORT"));
    }
}
