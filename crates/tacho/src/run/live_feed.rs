//! The progress of a run, told to its live page.

use tacho_console::{LiveRun, RunAbout, ThresholdAbout};
use tacho_lab::run::{Progress, RunConfig};
use tacho_scenario::threshold::Threshold;

/// The description of a starting run on the live page.
pub(super) fn about(config: &RunConfig, title: Option<String>) -> RunAbout {
    let scenario = &config.scenario;
    let brokers = config.targets.iter().map(|target| match target.record.name.as_str() {
        "" => target.record.broker.clone(),
        name => format!("{name} {}", target.record.broker),
    });
    let first = config.targets.first();
    RunAbout {
        title,
        scenario: scenario.name.clone(),
        description: scenario.description.clone(),
        clients: scenario.clients(),
        version: first.map_or_else(String::new, |first| first.record.version.clone()),
        brokers: brokers.collect(),
        thresholds: scenario.thresholds.0.iter().map(threshold).collect(),
    }
}

fn threshold(threshold: &Threshold) -> ThresholdAbout {
    ThresholdAbout {
        condition: threshold.to_string(),
        figure: threshold.metric.to_string(),
        symbol: threshold.comparison.symbol(),
        limit: threshold.limit,
    }
}

/// Passes progress on.
pub(super) fn show(page: &LiveRun, progress: &Progress) {
    match progress {
        Progress::Phase { kind, planned, number, of } => {
            page.phase(kind.name(), *planned, (*number, *of));
        }
        Progress::Second { row, parts, agents, .. } => {
            page.second(row, parts);
            page.agents(agents);
        }
        Progress::Host(row) => page.host(row),
        Progress::Failed(sentence) => page.failed(sentence),
        Progress::AgentLost { agent, why, .. } => {
            page.failed(&format!("agent {agent} was lost: {why}"));
        }
        Progress::Action(state) => page.action((**state).clone()),
        // It is told as the state of an action, too.
        Progress::Acted { .. } => {}
        // It is none of the run's figures.
        Progress::Trouble { .. } => {}
    }
}
