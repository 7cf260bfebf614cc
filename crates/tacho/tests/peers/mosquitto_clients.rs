//! `mosquitto_pub` and `mosquitto_sub` against Tacho's broker.

use std::io::Write;
use std::process::{Command, Stdio};

use libtest_mimic::{Failed, Trial};

use crate::broker::Broker;
use crate::process::{Peer, Running};
use crate::{Verdict, trial};

const PEERS: [Peer; 3] = [Peer::MosquittoPub, Peer::MosquittoSub, Peer::Stdbuf];
const VERSIONS: [&str; 2] = ["mqttv311", "mqttv5"];

pub(crate) fn register(trials: &mut Vec<Trial>) {
    for version in VERSIONS {
        for qos in 0..=2 {
            let name = format!("mosquitto_{version}_qos{qos}_arrives_in_order");
            trials.push(trial(name, &PEERS, move || {
                arrives_in_order(&Broker::tacho()?, version, qos)
            }));
        }
        let name = format!("mosquitto_{version}_arrives_in_order_over_tls");
        trials.push(trial(name, &PEERS, move || {
            arrives_in_order(&Broker::tacho_over("tls")?, version, 2)
        }));
        let name = |what: &str| format!("mosquitto_{version}_{what}");
        trials.push(trial(name("retained_is_replayed"), &PEERS, move || retained(version)));
        trials.push(trial(name("killed_client_leaves_its_will"), &PEERS, move || will(version)));
        trials.push(trial(name("shared_group_divides"), &PEERS, move || shared(version)));
        trials
            .push(trial(name("session_outlives_its_connection"), &PEERS, move || session(version)));
    }
    trials.push(trial("mosquitto_mqttv31_arrives_in_order".into(), &PEERS, || {
        arrives_in_order(&Broker::tacho()?, "mqttv31", 1)
    }));
    trials.push(trial("mosquitto_versions_mix".into(), &PEERS, versions_mix));
}

/// Topic, QoS, retain flag, payload.
const FORMAT: &str = "message %t %q %r %p";

struct Subscriber(Running);

impl Subscriber {
    fn start(broker: &Broker, version: &str, count: usize, rest: &[&str]) -> Result<Self, Failed> {
        let mut subscriber = Self(Running::start(command(broker, version, count, rest)?)?);
        subscriber.0.wait_for_line(|line| line.starts_with("Subscribed (mid:"))?;
        Ok(subscriber)
    }

    fn messages(self) -> Result<Vec<String>, Failed> {
        Ok(messages(self.0.succeed()?))
    }
}

fn messages(said: Vec<String>) -> Vec<String> {
    said.into_iter().filter_map(|line| Some(line.strip_prefix("message ")?.to_owned())).collect()
}

fn command(broker: &Broker, version: &str, count: usize, rest: &[&str]) -> Result<Command, Failed> {
    let mut command = Peer::Stdbuf.command()?;
    command.arg("-oL").arg(Peer::MosquittoSub.find().ok_or("no mosquitto_sub")?);
    command.args(["-h", "127.0.0.1", "-p", &broker.port.to_string(), "-V", version, "-d"]);
    trust(&mut command, broker);
    command.args(["-F", FORMAT, "-C", &count.to_string(), "-W", "45"]).args(rest);
    Ok(command)
}

/// Over TLS where the broker has it.
fn trust(command: &mut Command, broker: &Broker) {
    if let Some(ca) = broker.ca() {
        command.arg("--cafile").arg(ca);
    }
}

/// Publishes each line as one message.
fn publish(broker: &Broker, version: &str, lines: &[String], rest: &[&str]) -> Verdict {
    let mut command = Peer::MosquittoPub.command()?;
    command.args(["-h", "127.0.0.1", "-p", &broker.port.to_string(), "-V", version, "-l"]);
    trust(&mut command, broker);
    command.args(rest).stdin(Stdio::piped());
    let mut running = Running::start(command)?;
    let mut stdin = running.child.stdin.take().ok_or("no standard input")?;
    for line in lines {
        writeln!(stdin, "{line}")?;
    }
    drop(stdin);
    running.succeed()?;
    Ok(())
}

fn numbered(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("payload-{number:04}")).collect()
}

fn expect(got: &[String], wanted: &[String]) -> Verdict {
    if got == wanted {
        return Ok(());
    }
    Err(format!("got {got:#?}, wanted {wanted:#?}").into())
}

fn arrives_in_order(broker: &Broker, version: &str, qos: u8) -> Verdict {
    let qos = qos.to_string();
    let lines = numbered(50);
    let filter = ["-q", &qos, "-t", "rooms/+/temperature"];
    let subscriber = Subscriber::start(broker, version, lines.len(), &filter)?;
    publish(broker, version, &lines, &["-q", &qos, "-t", "rooms/7/temperature"])?;
    let wanted: Vec<_> =
        lines.iter().map(|line| format!("rooms/7/temperature {qos} 0 {line}")).collect();
    expect(&subscriber.messages()?, &wanted)
}

fn versions_mix() -> Verdict {
    let broker = Broker::tacho()?;
    let lines = numbered(10);
    let old = Subscriber::start(&broker, "mqttv311", 20, &["-q", "2", "-t", "mix/#"])?;
    let new = Subscriber::start(&broker, "mqttv5", 20, &["-q", "1", "-t", "mix/#"])?;
    publish(&broker, "mqttv311", &lines, &["-q", "2", "-t", "mix/a"])?;
    publish(&broker, "mqttv5", &lines, &["-q", "2", "-t", "mix/b"])?;
    for (subscriber, qos) in [(old, 2), (new, 1)] {
        let wanted: Vec<_> = ["mix/a", "mix/b"]
            .iter()
            .flat_map(|topic| lines.iter().map(move |line| format!("{topic} {qos} 0 {line}")))
            .collect();
        expect(&subscriber.messages()?, &wanted)?;
    }
    Ok(())
}

fn retained(version: &str) -> Verdict {
    let broker = Broker::tacho()?;
    let said = ["one".to_owned(), "two".to_owned()];
    publish(&broker, version, &said, &["-q", "1", "-r", "-t", "state/door"])?;
    let subscriber = Subscriber::start(&broker, version, 1, &["-q", "1", "-t", "state/#"])?;
    expect(&subscriber.messages()?, &["state/door 1 1 two".to_owned()])?;
    // An empty payload takes it away: the next subscriber sees only what comes after.
    let mut clear = Peer::MosquittoPub.command()?;
    clear.args(["-h", "127.0.0.1", "-p", &broker.port.to_string(), "-V", version]);
    clear.args(["-q", "1", "-r", "-n", "-t", "state/door"]);
    Running::start(clear)?.succeed()?;
    let subscriber = Subscriber::start(&broker, version, 1, &["-q", "1", "-t", "state/#"])?;
    publish(&broker, version, &["live".to_owned()], &["-q", "1", "-t", "state/door"])?;
    expect(&subscriber.messages()?, &["state/door 1 0 live".to_owned()])
}

fn will(version: &str) -> Verdict {
    let broker = Broker::tacho()?;
    let watcher = Subscriber::start(&broker, version, 1, &["-q", "1", "-t", "wills/#"])?;
    let will = ["--will-topic", "wills/v", "--will-payload", "gone", "--will-qos", "1"];
    let victim = Subscriber::start(
        &broker,
        version,
        1,
        &[&["-i", "victim", "-t", "x"], &will[..]].concat(),
    )?;
    // Killing the wrapper is not enough where it forks; `stdbuf` replaces itself.
    victim.0.kill()?;
    expect(&watcher.messages()?, &["wills/v 1 0 gone".to_owned()])
}

fn shared(version: &str) -> Verdict {
    let broker = Broker::tacho()?;
    let lines = numbered(40);
    // More than each gets: they run until `end` has reached all of them.
    let filter = ["-q", "1", "-t", "$share/workers/jobs/#", "-t", "end"];
    let members = [(); 2].map(|()| Subscriber::start(&broker, version, 1000, &filter));
    let plain = Subscriber::start(&broker, version, 40, &["-q", "1", "-t", "jobs/#"])?;
    publish(&broker, version, &lines, &["-q", "1", "-t", "jobs/print"])?;
    let wanted: Vec<_> = lines.iter().map(|line| format!("jobs/print 1 0 {line}")).collect();
    expect(&plain.messages()?, &wanted)?;
    publish(&broker, version, &["of work".to_owned()], &["-q", "1", "-t", "end"])?;
    let mut together = Vec::new();
    for member in members {
        let mut member = member?.0;
        member.wait_for_line(|line| line == "message end 1 0 of work")?;
        together.extend(messages(member.kill()?));
    }
    together.retain(|line| !line.starts_with("end "));
    together.sort();
    expect(&together, &wanted)
}

fn session(version: &str) -> Verdict {
    let broker = Broker::tacho()?;
    let lines = numbered(20);
    let expiry: &[&str] = if version == "mqttv5" { &["-x", "300"] } else { &[] };
    let options = [&["-q", "1", "-t", "mail/#", "-i", "reader", "-c"], expiry].concat();
    // `-E` leaves once the subscription is acknowledged.
    let mut first = command(&broker, version, 1, &options)?;
    first.arg("-E");
    Running::start(first)?.succeed()?;
    publish(&broker, version, &lines, &["-q", "1", "-t", "mail/in"])?;
    let reader = Running::start(command(&broker, version, lines.len(), &options)?)?;
    let wanted: Vec<_> = lines.iter().map(|line| format!("mail/in 1 0 {line}")).collect();
    expect(&messages(reader.succeed()?), &wanted)
}
