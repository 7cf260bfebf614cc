//! Events of a run's programs, recorded; and the actions that its phases ask of them.

use std::sync::Arc;
use std::time::Duration;

use tacho_lab::run::{
    BridgeFigures, BridgeLog, BridgeSample, CommandDone, Commands, Course, Kills, RunConfig,
};
use tacho_load::PhaseKind;
use tacho_record::{CutShort, RunDirectory};
use tacho_rig::{CommandEnd, CommandEvent, Killer, ProcessEvents, TimedCommand, WatchedBridge};
use tacho_scenario::{Action, ActionKind};

/// Records the kills and restarts of a broker.
struct CourseEvents(Arc<Course>);

impl ProcessEvents for CourseEvents {
    fn killed(&self) {
        self.0.killed();
    }

    fn started(&self, pid: u32) {
        self.0.started(pid);
    }

    fn serves(&self) {
        self.0.serves();
    }
}

/// Receives the events of a broker's killer.
pub(super) fn process_events(course: &Arc<Course>) -> Arc<dyn ProcessEvents> {
    Arc::new(CourseEvents(Arc::clone(course)))
}

/// A phase began, which is planned to take so long: plans the kills that fall into it.
pub(super) fn plan_kills(
    killer: &Killer,
    kills: &Kills,
    phase: PhaseKind,
    planned: Option<Duration>,
) {
    match phase {
        PhaseKind::Measure => killer.plan(&kills.while_measuring(planned.unwrap_or_default())),
        PhaseKind::Resume => killer.plan(kills.while_draining()),
        PhaseKind::Disconnect => killer.cancel(),
        _ => {}
    }
}

/// The commands of the scenario's timed actions. Only a user's own file has any: built-in scenarios
/// run no commands. `pid` and `port` are those of the first broker.
pub(super) fn timed_commands(
    config: &RunConfig,
    directory: &RunDirectory,
    (pid, port): (Option<u32>, u16),
) -> Vec<TimedCommand> {
    let mut commands = Vec::new();
    for (number, scheduled) in config.scenario.schedule().iter().enumerate() {
        let ActionKind::Run(text) = &scheduled.action.kind else { continue };
        let dir = directory.path().display().to_string();
        let pid = pid.map_or_else(String::new, |pid| pid.to_string());
        commands.push(TimedCommand {
            number,
            after: scheduled.after,
            text: text
                .replace("{dir}", &dir)
                .replace("{port}", &port.to_string())
                .replace("{pid}", &pid),
            timeout: scheduled.action.timeout.map_or(Action::TIMEOUT, |timeout| timeout.0),
            log: directory.file(&log_name(commands.len())),
        });
    }
    commands
}

/// The file for the output of the command at this position.
fn log_name(position: usize) -> String {
    format!("command-{}.log", position + 1)
}

/// Records the starts and ends of the run's commands.
pub(super) fn command_log(config: &RunConfig) -> impl FnMut(CommandEvent) + Send + 'static {
    let commands = Arc::clone(&config.commands);
    let (mut began_ns, mut position) = (0, 0);
    move |event| match event {
        CommandEvent::Began { number } => {
            began_ns = Commands::now_ns();
            commands.began(number, began_ns);
        }
        CommandEvent::Ended { number, took, end } => {
            let (exit_code, cut_short) = match end {
                CommandEnd::Exited(code) => (code, None),
                CommandEnd::TimedOut => (None, Some(CutShort::TimedOut)),
                CommandEnd::RunOver => (None, Some(CutShort::RunOver)),
                CommandEnd::Unknown(error) => {
                    (None, Some(CutShort::NotWatched { error: error.to_string() }))
                }
                CommandEnd::NotStarted(error) => {
                    (None, Some(CutShort::NotStarted { error: error.to_string() }))
                }
            };
            commands.done(CommandDone {
                scheduled: number,
                at_ns: began_ns,
                took_ns: u64::try_from(took.as_nanos()).unwrap_or(u64::MAX),
                exit_code,
                output: log_name(position),
                cut_short,
            });
            position += 1;
        }
    }
}

/// Records the bridge figures that a broker reports.
pub(super) fn bridge_log(log: Arc<BridgeLog>) -> impl FnMut(&[WatchedBridge<'_>]) + Send + 'static {
    move |bridges| {
        let figures = |bridge: &WatchedBridge<'_>| {
            let figures = &bridge.state.figures;
            BridgeFigures {
                to: bridge.to.to_owned(),
                connections: bridge.state.connections.len() as u64,
                connected: bridge.state.connected,
                sent: figures.sent,
                waiting: figures.buffered_messages + figures.inflight,
                waiting_bytes: figures.buffered_bytes,
            }
        };
        let bridges = bridges.iter().map(figures).collect();
        log.told(BridgeSample { at_ns: BridgeLog::now_ns(), bridges });
    }
}
