//! The progress display of a run: a line that changes on a terminal, lines otherwise.

use std::io::IsTerminal as _;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tacho_lab::run::{Progress, RunConfig};
use tacho_record::{PhaseName, SeriesRow};
use tacho_report::Lang;
use tacho_scenario::format::{latency, rate, thousands};

/// Seconds between two lines without a terminal.
const SECONDS_PER_LINE: u32 = 5;
/// Failures of clients that are shown; the report has more.
const FAILURES_SHOWN: u32 = 5;

/// Shows progress on standard error.
#[derive(Debug)]
pub(super) struct Display {
    style: Style,
    phase: PhaseName,
    planned: Option<Duration>,
    seconds_in_phase: f64,
    failures: u32,
}

#[derive(Debug)]
enum Style {
    Silent,
    Lines { until_next: u32 },
    Terminal(ProgressBar),
}

impl Display {
    /// Begins with a line about the run.
    pub(super) fn new(quiet: bool, config: &RunConfig, title: Option<&str>) -> Self {
        let style = match (quiet, std::io::stderr().is_terminal()) {
            (true, _) => Style::Silent,
            (false, false) => Style::Lines { until_next: SECONDS_PER_LINE },
            (false, true) => {
                let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
                // Invariant: the template is a constant that indicatif accepts.
                if let Ok(template) = ProgressStyle::with_template("{spinner} {wide_msg}") {
                    bar.set_style(template);
                }
                bar.enable_steady_tick(Duration::from_millis(250));
                Style::Terminal(bar)
            }
        };
        let display = Self {
            style,
            phase: PhaseName::default(),
            planned: None,
            seconds_in_phase: 0.0,
            failures: 0,
        };
        if let Some(title) = title {
            display.line(title);
            return display;
        }
        let brokers = config.targets.iter().map(|target| {
            let command = target.record.command.as_ref();
            let command = command.map_or(String::new(), |command| format!(" ({command})"));
            match target.record.name.as_str() {
                "" => format!("broker {}{command}", target.record.broker),
                name => format!("broker {name} {}{command}", target.record.broker),
            }
        });
        let version = config.targets.first().map_or("?", |target| &target.record.version);
        display.line(&format!(
            "{}: {} clients, MQTT {version}, {}",
            config.scenario.name,
            thousands(config.scenario.clients()),
            brokers.collect::<Vec<_>>().join(", "),
        ));
        display
    }

    /// Shows one progress event.
    pub(super) fn show(&mut self, news: Progress) {
        match news {
            Progress::Phase { kind, planned, .. } => {
                self.phase = kind.into();
                self.planned = planned;
                self.seconds_in_phase = 0.0;
                match &mut self.style {
                    Style::Terminal(bar) => bar.set_message(self.phase.to_string()),
                    Style::Lines { until_next } => {
                        *until_next = SECONDS_PER_LINE;
                        self.line(&self.phase_line());
                    }
                    Style::Silent => {}
                }
            }
            Progress::Second { row, clients, .. } => {
                // The last second of a phase is reported when the next one has begun.
                if row.phase != self.phase {
                    return;
                }
                self.seconds_in_phase += row.length_s;
                let line = self.second_line(&row, clients);
                match &mut self.style {
                    Style::Terminal(bar) => bar.set_message(line),
                    Style::Lines { until_next } => {
                        *until_next = until_next.saturating_sub(1);
                        if *until_next == 0 {
                            *until_next = SECONDS_PER_LINE;
                            self.line(&line);
                        }
                    }
                    Style::Silent => {}
                }
            }
            // One line has no room for hosts; the live page has.
            Progress::Host(_) | Progress::Action(_) => {}
            Progress::Acted { effect, clients } => {
                let what = Lang::En.effect(&effect);
                self.line(&format!("action: {what} ({} clients)", thousands(clients)));
            }
            Progress::Trouble { output, why } => {
                self.line(&format!("output {output}: {why}; further errors are only counted"));
            }
            Progress::AgentLost { agent, clients: (lost, of), why } => {
                let of_all = format!("{} of {} clients", thousands(lost), thousands(of));
                self.line(&format!("degraded: agent {agent} ({of_all}) was lost: {why}"));
            }
            Progress::Failed(sentence) => {
                self.failures += 1;
                if self.failures <= FAILURES_SHOWN {
                    self.line(&format!("failed: {sentence}"));
                }
                if self.failures == FAILURES_SHOWN {
                    self.line("further failures are only counted");
                }
            }
        }
    }

    /// Leaves the terminal clean.
    pub(super) fn end(&self) {
        if let Style::Terminal(bar) = &self.style {
            bar.finish_and_clear();
        }
    }

    fn phase_line(&self) -> String {
        match self.planned {
            Some(planned) => format!("{} ({} s)", self.phase, planned.as_secs_f64()),
            None => self.phase.to_string(),
        }
    }

    fn second_line(&self, row: &SeriesRow, clients: u64) -> String {
        let done = self.seconds_in_phase.round();
        let progress = match self.planned {
            Some(planned) => format!("{done:.0}/{:.0} s", planned.as_secs_f64()),
            None => format!("{done:.0} s"),
        };
        let mut line = format!(
            "{:<10} {progress:>9}  clients {}/{}  in {}/s  out {}/s",
            self.phase,
            thousands(row.connected),
            thousands(clients),
            rate(row.sent_per_s),
            rate(row.received_per_s),
        );
        for (name, value) in [("p50", row.e2e_p50_us), ("p99", row.e2e_p99_us)] {
            if let Some(us) = value {
                line.push_str(&format!("  {name} {}", latency(us as f64)));
            }
        }
        line
    }

    /// A line that stays.
    fn line(&self, text: &str) {
        match &self.style {
            Style::Silent => {}
            Style::Lines { .. } => eprintln!("{text}"),
            Style::Terminal(bar) => bar.println(text),
        }
    }
}
