//! Agents: what each of them did and used in a window, and their clocks.

use std::fmt::Write as _;

use super::grid::{Cell, Grid};
use super::lang::Lang;
use super::page::Page;
use tacho_record::{AgentRecord, RunRecord, Step, StepAgent};
use tacho_scenario::format::{self, percent, rate, thousands};

/// Cells of an agent's part of a window.
const CELLS: usize = 9;

const fn heads(lang: Lang) -> [&'static str; CELLS] {
    [
        lang.agent(),
        lang.sent_s(),
        lang.received_s(),
        lang.network_bytes(),
        "CPU",
        lang.busiest(),
        lang.late_p99(),
        lang.segments_resent(),
        lang.bus(),
    ]
}

fn cells(agent: &StepAgent) -> [Option<String>; CELLS] {
    let bytes = |per_s: f64| format!("{}/s", format::bytes(per_s.round() as u64));
    let bus = agent.bus_up_bytes_per_s.zip(agent.bus_down_bytes_per_s);
    [
        Some(agent.name.clone()),
        Some(rate(agent.sent_per_s)),
        Some(rate(agent.received_per_s)),
        Some(bytes(agent.bytes_out_per_s + agent.bytes_in_per_s)),
        Some(percent(agent.cpu_percent.unwrap_or(agent.threads_cpu_percent))),
        Some(percent(agent.thread_busy_max_percent)),
        agent.send_delay_us.p99.map(|us| format::latency(us as f64)),
        agent.retransmits_per_s.map(rate),
        bus.map(|(up, down)| bytes(up + down)),
    ]
}

/// The table of a terminal.
pub(super) fn text(lang: Lang, out: &mut String, step: &Step) {
    if step.agents.is_empty() {
        return;
    }
    let mut line = |cells: [String; CELLS]| {
        let mut text = String::new();
        for (index, cell) in cells.into_iter().enumerate() {
            let _ = match index {
                0 => write!(text, "  {cell:<16}"),
                1 | 4 | 5 => write!(text, "{cell:>9}"),
                3 | 8 => write!(text, "{cell:>12}"),
                _ => write!(text, "{cell:>11}"),
            };
        }
        let _ = writeln!(out, "{}", text.trim_end());
    };
    let mut named = heads(lang).map(str::to_owned);
    named[0] = lang.agents().to_uppercase();
    line([const { String::new() }; CELLS]);
    line(named);
    for agent in &step.agents {
        line(cells(agent).map(|cell| cell.unwrap_or_else(|| "-".to_owned())));
    }
}

/// The table of a page.
pub(super) fn table(lang: Lang, out: &mut String, step: &Step) {
    if step.agents.is_empty() {
        return;
    }
    let _ = writeln!(out, "<h3>{}</h3>", lang.agents());
    let mut grid = Grid::new(&heads(lang));
    for agent in &step.agents {
        grid.row(false, cells(agent).map(Cell::or_dash).to_vec());
    }
    grid.render(out);
    let _ = writeln!(out, "<p class=\"chart-note\">{}</p>", lang.agents_note());
}

/// How far an agent's clock was ahead, its drift, and the bound of its error.
fn clock(lang: Lang, agent: &AgentRecord) -> [String; 3] {
    let clock = &agent.clock;
    if clock.same {
        return [lang.the_controllers_clock().to_owned(), "-".to_owned(), "-".to_owned()];
    }
    [
        format!("{:+.3} ms", clock.ahead_ms),
        format!("{:+.1} ± {:.1} ppm", clock.drift_ppm, clock.drift_error_ppm),
        format::latency(clock.error_us as f64),
    ]
}

/// The agents of a run: size, clock, and what became of them.
pub(super) fn section(page: &mut Page, record: &RunRecord) {
    if record.agents.is_empty() {
        return;
    }
    let lang = page.lang;
    page.section("agents", lang.agents());
    let mut grid = Grid::new(&[
        lang.agent(),
        lang.threads(),
        lang.clients(),
        lang.clock_ahead(),
        lang.clock_drift(),
        lang.clock_error(),
        lang.agent_lost(),
    ]);
    for agent in &record.agents {
        let [ahead, drift, error] = clock(lang, agent);
        let lost = agent.lost.as_ref();
        let lost = lost.map(|loss| lang.lost_after(format!("{:.1}", loss.at_s), &loss.why));
        grid.row(
            false,
            vec![
                Cell::text(agent.name.clone()),
                Cell::text(thousands(agent.threads)),
                Cell::text(thousands(agent.clients)),
                Cell::text(ahead),
                Cell::text(drift),
                Cell::text(error),
                Cell::or_dash(lost).failed(agent.lost.is_some()),
            ],
        );
    }
    grid.render(&mut page.out);
}

/// What a terminal is told about clocks that are not the controller's.
pub(super) fn clocks_text(lang: Lang, out: &mut String, record: &RunRecord) {
    for agent in record.agents.iter().filter(|agent| !agent.clock.same) {
        let [ahead, drift, error] = clock(lang, agent);
        let _ = writeln!(
            out,
            "clock of {}: {ahead} ahead, drift {drift}, times off by at most {error}",
            agent.name
        );
    }
}

#[cfg(test)]
mod tests {
    use tacho_record::{AgentClock, AgentLoss, LatencyStats};

    use super::*;

    fn step() -> Step {
        let agent = StepAgent {
            name: "load-1".to_owned(),
            sent_per_s: 10_000.0,
            received_per_s: 10_001.0,
            bytes_out_per_s: 900_000.0,
            bytes_in_per_s: 100_000.0,
            send_delay_us: LatencyStats { p99: Some(45), ..LatencyStats::default() },
            threads_cpu_percent: 40.0,
            thread_busy_max_percent: 41.5,
            cpu_percent: Some(55.5),
            retransmits_per_s: Some(0.5),
            bus_up_bytes_per_s: Some(2_000.0),
            bus_down_bytes_per_s: Some(48.0),
            ..StepAgent::default()
        };
        let silent = StepAgent { name: "<load-2>".to_owned(), ..StepAgent::default() };
        Step { agents: vec![agent, silent], ..Step::default() }
    }

    #[test]
    fn a_terminal_shows_a_line_for_each_agent() {
        let mut out = String::new();
        text(Lang::En, &mut out, &step());
        let words: Vec<String> =
            out.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(words[1], "AGENTS sent/s received/s network CPU busiest late p99 resent/s bus");
        assert_eq!(words[2], "load-1 10,000 10,001 976.6 KiB/s 55.5 % 41.5 % 45 µs 0.5 2.0 KiB/s");
        assert_eq!(words[3], "<load-2> 0.0 0.0 0 B/s 0.0 % 0.0 % - - -");
        assert!(out.lines().all(|line| line.chars().count() <= 102), "{out}");
        let mut none = String::new();
        text(Lang::En, &mut none, &Step::default());
        assert!(none.is_empty());
    }

    #[test]
    fn clocks_are_told_with_their_error() {
        let other = AgentRecord {
            name: "load-1".to_owned(),
            clock: AgentClock {
                ahead_ms: -12.5,
                drift_ppm: 99.95,
                drift_error_ppm: 1.24,
                error_us: 1_250,
                ..AgentClock::default()
            },
            lost: Some(AgentLoss { at_s: 7.25, percent: 50.0, why: "<gone>".to_owned() }),
            ..AgentRecord::default()
        };
        let same = AgentClock { same: true, ..AgentClock::default() };
        let near = AgentRecord { clock: same, ..AgentRecord::default() };
        let record = RunRecord { agents: vec![near, other], ..RunRecord::default() };
        let mut out = String::new();
        clocks_text(Lang::En, &mut out, &record);
        let expected = "clock of load-1: -12.500 ms ahead, drift +100.0 ± 1.2 ppm, times off by at \
                        most 1.25 ms\n";
        assert_eq!(out, expected);
    }
}
