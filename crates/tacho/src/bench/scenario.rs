//! The scenario that the flags describe.

use std::fmt::Write as _;

use super::arguments::{BenchCommand, BenchConnection, BenchPubArguments, BenchSubArguments};
use crate::exit::{self, Failure};

/// Load before the figures count, where no number of messages is asked for.
const WARMUP_S: u32 = 2;

/// Its name.
pub(super) const fn name(command: &BenchCommand) -> &'static str {
    match command {
        BenchCommand::Conn(_) => "bench-conn",
        BenchCommand::Pub(_) => "bench-pub",
        BenchCommand::Sub(_) => "bench-sub",
    }
}

/// The text of its file.
pub(super) fn text(command: &BenchCommand) -> Result<String, Failure> {
    let connection = command.connection();
    let verb = verb(command);
    let client_id = client_id(connection, verb);
    let mut text = format!(
        "name = {}\ndescription = {}\n\n[target]\nversion = {}\n\n",
        quoted(name(command)),
        quoted(&description(command)),
        quoted(&connection.version),
    );
    group(&mut text, connection, (verb, &client_id));
    let fill = |given: &str| {
        let user = connection.username.as_deref().unwrap_or_default();
        template(&given.replace("%u", user), &client_id, connection.first)
    };
    let mut phases = format!("measure = {}\n", quoted(&format!("{}s", seconds(connection))));
    let mut warmup_s = 0;
    match command {
        BenchCommand::Conn(_) => phases.push_str("drain = \"0s\"\n"),
        BenchCommand::Pub(of) => {
            publication(&mut text, of, &fill);
            match of.limit {
                Some(limit) => phases = format!("messages = {}\n", per_client(of, limit)?),
                None => warmup_s = WARMUP_S,
            }
        }
        BenchCommand::Sub(of) => {
            let BenchSubArguments { topic, qos, .. } = &**of;
            let filter = quoted(&fill(topic));
            let _ = write!(text, "[[groups.sub.subscribe]]\nfilter = {filter}\nqos = {qos}\n\n");
            phases.push_str("drain = \"0s\"\n");
        }
    }
    let _ = write!(text, "[phases]\nwarmup = \"{warmup_s}s\"\n{phases}");
    Ok(text)
}

const fn verb(command: &BenchCommand) -> &'static str {
    match command {
        BenchCommand::Conn(_) => "conn",
        BenchCommand::Pub(_) => "pub",
        BenchCommand::Sub(_) => "sub",
    }
}

fn description(command: &BenchCommand) -> String {
    let count = command.connection().count;
    match command {
        BenchCommand::Conn(_) => format!("{count} clients connect and stay."),
        BenchCommand::Pub(of) => {
            format!("{count} clients publish a message every {} ms each.", of.interval_ms)
        }
        BenchCommand::Sub(_) => format!("{count} clients subscribe."),
    }
}

fn seconds(connection: &BenchConnection) -> f64 {
    connection.duration.0.as_secs_f64()
}

fn group(text: &mut String, connection: &BenchConnection, (verb, client_id): (&str, &str)) {
    let pace = match (connection.connects_per_s, connection.connect_interval_ms) {
        (Some(per_s), _) => format!("rate = \"{per_s}/s\""),
        (None, 0) => "ramp = \"0s\"".to_owned(),
        (None, ms) => format!("rate = \"{}/s\"", 1000.0 / f64::from(ms)),
    };
    let BenchConnection { count, keepalive, clean, session_expiry, .. } = connection;
    let _ = writeln!(text, "[groups.{verb}]\nclients = {count}\nclient_id = {}", quoted(client_id));
    let _ = writeln!(
        text,
        "connect = {{ {pace}, keep_alive = \"{keepalive}s\", clean_start = {clean}, \
         session_expiry = \"{session_expiry}s\" }}"
    );
    text.push('\n');
}

fn publication(text: &mut String, of: &BenchPubArguments, fill: &dyn Fn(&str) -> String) {
    if let Some(inflight) = of.inflight {
        // The group's table ends with an empty line.
        text.pop();
        let _ = write!(text, "inflight = {inflight}\n\n");
    }
    let payload = match &of.message {
        Some(message) => format!("text = {}", quoted(message)),
        None => format!("size = {}", of.size),
    };
    let BenchPubArguments { qos, retain, interval_ms, .. } = of;
    let rate = 1000.0 / f64::from(*interval_ms);
    let topic = quoted(&fill(&of.topic));
    let _ = write!(
        text,
        "[[groups.pub.publish]]\ntopic = {topic}\nqos = {qos}\nretain = {retain}\nrate = {{ \
         per_client = \"{rate}/s\" }}\npayload = {{ {payload} }}\n\n"
    );
}

/// Messages of each client, for `limit` over all of them.
fn per_client(of: &BenchPubArguments, limit: u64) -> Result<u64, Failure> {
    let count = u64::from(of.connection.count);
    if !limit.is_multiple_of(count) {
        let sentence = format!(
            "{limit} messages cannot be divided among {count} clients: -L must be a multiple of -c"
        );
        return Err(Failure::new(exit::INVALID_CONFIG, sentence));
    }
    Ok(limit / count)
}

/// Identifiers that no other command uses, unless they are given.
fn client_id(connection: &BenchConnection, verb: &str) -> String {
    let text = match (&connection.client_id, &connection.prefix) {
        (Some(id), _) => id.clone(),
        (None, Some(prefix)) => format!("{prefix}_bench_{verb}_%i"),
        (None, None) => format!("bench_{verb}_{:x}_%i", std::process::id()),
    };
    template(&text, "", connection.first)
}

/// A text with %i and %c as the template of a scenario.
pub(super) fn template(text: &str, client_id: &str, first: u32) -> String {
    let number = match first {
        0 => "{{client}}".to_owned(),
        first => format!("{{{{client + {first}}}}}"),
    };
    text.replace("%c", client_id).replace("%i", &number)
}

/// A string of TOML.
fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use tacho_scenario::{Adjustment, Limits, Scenario, SourceText};

    use super::*;
    use crate::bench::BenchArguments;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        bench: BenchArguments,
    }

    fn command(line: &str) -> BenchCommand {
        Line::parse_from(line.split(' ')).bench.command
    }

    fn scenario(line: &str) -> Scenario {
        let command = command(line);
        let text = text(&command).map_err(|failure| failure.message).expect("is a scenario");
        let source = SourceText::new("bench", &text);
        Scenario::parse_adjusted(&source, &[], &Adjustment::NONE, Limits::NONE)
            .unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    #[test]
    fn connects_come_at_their_interval() {
        let text = text(&command("bench conn -c 5000 -i 2 --prefix x -n 10 -k 60 -V 4"));
        let text = text.map_err(|failure| failure.message).expect("is a scenario");
        assert_eq!(
            text,
            "name = \"bench-conn\"\ndescription = \"5000 clients connect and stay.\"\n\n\
             [target]\nversion = \"4\"\n\n\
             [groups.conn]\nclients = 5000\nclient_id = \"x_bench_conn_{{client + 10}}\"\n\
             connect = { rate = \"500/s\", keep_alive = \"60s\", clean_start = true, \
             session_expiry = \"0s\" }\n\n\
             [phases]\nwarmup = \"0s\"\nmeasure = \"60s\"\ndrain = \"0s\"\n"
        );
        scenario("bench conn -i 0 -C false -x 100");
    }

    #[test]
    fn publishers_have_topics_of_their_own_and_a_limit_for_all() {
        let line = "bench pub -t a/%i/%c/%u -c 100 -I 10 -s 64 -q 1 -r -F 8 -u ann -L 5000";
        let text = text(&command(line)).map_err(|failure| failure.message).expect("a scenario");
        for part in [
            "inflight = 8\n",
            "qos = 1\nretain = true\nrate = { per_client = \"100/s\" }\npayload = { size = 64 }",
            "{{client}}/bench_pub_",
            "_{{client}}/ann\"",
            "warmup = \"0s\"\nmessages = 50\n",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        scenario(line);
        scenario("bench pub -t a -I 3 -m say{\"a\":1} -d 5s");
        let odd = super::text(&command("bench pub -t a -c 3 -L 10"));
        let odd = odd.map_err(|failure| failure.message).expect_err("cannot be divided");
        assert!(odd.contains("a multiple of -c"), "{odd}");
    }

    #[test]
    fn subscribers_take_filters_and_shared_groups() {
        scenario("bench sub -t $share/g/a/+ -q 2 -c 20 -R 100");
        scenario("bench sub -t b/%i/# --client-id s-%i");
    }
}
