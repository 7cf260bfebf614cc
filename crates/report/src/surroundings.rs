//! Information for repeating a run: its command, scenario and machine.

use std::fmt::Write as _;

use super::course;
use super::data::ReportData;
use super::document::files;
use super::elements::{escape, pairs};
use super::lang::Lang;
use super::page::Page;
use tacho_record::{LatencyStats, MonitorRecord, RunRecord};
use tacho_scenario::format::{self, thousands};

/// How to do it again, where it was done, and what else there is.
pub(super) fn surroundings(page: &mut Page, data: &ReportData<'_>) {
    let lang = page.lang;
    reproduce(page, data);
    page.out.push_str("<div class=\"columns\">");
    pairs(&mut page.out, lang.scenario(), &scenario(lang, data.record));
    let monitors: Vec<_> =
        data.record.monitors.iter().map(|monitor| watched(lang, monitor)).collect();
    if !monitors.is_empty() {
        pairs(&mut page.out, lang.watched_hosts(), &monitors);
    }
    page.out.push_str("</div>\n");
    environment(page, data);
    files(page);
}

/// The commands that repeat the run.
fn reproduce(page: &mut Page, data: &ReportData<'_>) {
    let (record, lang) = (data.record, page.lang);
    page.section("reproduce", lang.how_to_reproduce());
    let command = &data.environment.command_line;
    if !command.is_empty() {
        page.note(lang.the_command_with_passwords_and_tokens_left_out());
        let line = command.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
        let _ = writeln!(page.out, "<pre>{}</pre>", escape(&line));
    }
    if record.kind == tacho_record::RunKind::Run {
        page.note(lang.the_same_load());
        page.out.push_str("<pre>tacho run scenario.toml</pre>\n");
    }
}

/// Variables, brokers and clients of the run, by name.
fn scenario(lang: Lang, record: &RunRecord) -> Vec<(String, String)> {
    let mut run: Vec<(String, String)> =
        record.vars.iter().map(|(name, value)| (name.clone(), value.to_string())).collect();
    run.push((lang.seed().to_owned(), record.seed.to_string()));
    for target in &record.targets {
        let name = if target.name.is_empty() { lang.broker() } else { target.name.as_str() };
        run.push((name.to_owned(), target.broker.clone()));
        if target.durability.is_some() {
            run.push((lang.sessions_of(name), course::keeping(lang, target)));
        }
    }
    if let Some(command) = &record.target.command {
        run.push((lang.broker_command().to_owned(), command.clone()));
    }
    let p50 = |stats: &LatencyStats| lang.latency_or(stats.p50.map(|us| us as f64));
    if record.connect_us.count > 0 {
        run.push((lang.median_time_to_connack().to_owned(), p50(&record.connect_us)));
        if record.handshake_us.count > 0 {
            let handshake = p50(&record.handshake_us);
            run.push((lang.median_time_of_tls_and_websocket_handshakes().to_owned(), handshake));
        }
        run.push((lang.median_time_to_suback().to_owned(), p50(&record.suback_us)));
    }
    if record.clients > 0 {
        let (connected, all) = (thousands(record.clients_connected), thousands(record.clients));
        run.push((lang.clients_connected().to_owned(), lang.some_of(connected, all)));
        run.push((lang.failures_of_clients().to_owned(), thousands(record.client_failures)));
    }
    run
}

/// A monitor and its result.
fn watched(lang: Lang, monitor: &MonitorRecord) -> (String, String) {
    let of = monitor.target.as_ref().map_or_else(String::new, |name| lang.named(name));
    let clock = monitor.clock_error_us_max.map_or_else(
        || lang.clock_error_unknown().to_owned(),
        |us| lang.clock_error_at_most(format::latency(us)),
    );
    let trouble = match monitor.errors + monitor.dropped {
        0 => String::new(),
        _ => {
            let last = monitor.last_error.as_ref();
            let last = last.map_or_else(String::new, |error| format!("; {error}"));
            lang.monitor_trouble(monitor.errors, monitor.dropped, last)
        }
    };
    (format!("{}{of}", monitor.source), lang.monitor_rows(thousands(monitor.rows), clock, trouble))
}

/// The machine with its kernel settings, and the hosts of the brokers.
fn environment(page: &mut Page, data: &ReportData<'_>) {
    let (lang, environment) = (page.lang, data.environment);
    page.section("environment", lang.environment());
    page.out.push_str("<div class=\"columns\">");
    let [machine, settings] = lang.entries(environment);
    pairs(&mut page.out, lang.machine(), &machine);
    if !settings.is_empty() {
        pairs(&mut page.out, lang.kernel_settings(), &settings);
    }
    for target in &data.record.targets {
        let host = lang.host_entries(target.host_entries(), environment);
        if !host.is_empty() {
            let several = data.record.targets.len() > 1;
            let of = if several { lang.named(&target.name) } else { String::new() };
            pairs(&mut page.out, &lang.host_of_target(of), &host);
        }
    }
    page.out.push_str("</div>\n");
}

/// A word as a shell takes it.
pub(super) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=+,@%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_the_shell() {
        assert_eq!(quoted("--var"), "--var");
        assert_eq!(quoted("mosquitto -p {port}"), "'mosquitto -p {port}'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!(quoted(""), "''");
    }
}
