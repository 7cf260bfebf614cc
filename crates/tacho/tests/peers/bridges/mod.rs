//! Bridges of our broker to Debian's: both ways, through ends and restarts of either.

mod pair;

use std::time::Duration;

use libtest_mimic::{Failed, Trial};

use crate::operations::{get, promtool_checks};
use crate::process::{Peer, wait_until};
use crate::{Verdict, trial};
use pair::{Kind, Pair, Side};

const PEERS: [Peer; 4] = [Peer::Mosquitto, Peer::MosquittoPub, Peer::MosquittoSub, Peer::Stdbuf];
const VERSIONS: [&str; 2] = ["3.1.1", "5"];

/// Out below `there/`, in below `here/`.
const RULES: &str = "[[bridges.egress]]\nfilter = 'out/#'\ntopic = 'there/${topic}'\n\
                     [[bridges.ingress]]\nfilter = 'in/#'\ntopic = 'here/${topic}'\n";

const KIND: Kind =
    Kind { version: "5", connections: 3, more: RULES, guarded: false, durable: false };

pub(crate) fn register(trials: &mut Vec<Trial>) {
    for version in VERSIONS {
        let kind = Kind { version, ..KIND };
        let short = version.replace('.', "");
        let mut add = |what: &str, test: fn(Kind) -> Verdict, kind: Kind| {
            let name = format!("bridge_to_mosquitto_v{short}_{what}");
            trials.push(trial(name, &PEERS, move || test(kind)));
        };
        add("keeps_topics_qos_order_both_ways", both_ways, kind);
        add("loses_nothing_when_mosquitto_restarts", restarts, kind);
        let durable = Kind { durable: true, connections: 1, ..kind };
        add("goes_on_after_its_own_end", own_end, durable);
        let more =
            "[[bridges.egress]]\nfilter = 'loop/#'\n[[bridges.ingress]]\nfilter = 'loop/#'\n";
        add("sends_nothing_round_in_circles", circles, Kind { more, connections: 2, ..kind });
    }
    let changed = "[[bridges.egress]]\nfilter = 'out/#'\ntopic = 'q${qos}/${topic}'\nqos = 0\n\
                   payload = '<${payload}>'\nretain = true\n";
    trials.push(trial("bridge_to_mosquitto_changes_what_it_is_told_to".into(), &PEERS, || {
        changes(Kind { more: changed, ..KIND })
    }));
    let peers = [&PEERS[..], &[Peer::MosquittoPasswd]].concat();
    trials.push(trial("bridge_to_mosquitto_logs_in_by_tls".into(), &peers, || {
        logs_in(Kind { guarded: true, version: "3.1.1", ..KIND })
    }));
    let peers = [&PEERS[..], &[Peer::Promtool]].concat();
    trials.push(trial("bridge_to_mosquitto_tells_how_it_stands".into(), &peers, || tells(KIND)));
    trials.push(trial("bridge_to_mosquitto_says_topics_once".into(), &PEERS, || {
        aliases(Kind { connections: 1, ..KIND })
    }));
}

fn numbered(what: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{what}-{number:04}")).collect()
}

/// The messages of one topic, as they came.
fn of_topic(messages: &[String], topic: &str) -> Vec<String> {
    let prefix = format!("{topic} ");
    messages.iter().filter_map(|line| Some(line.strip_prefix(&prefix)?.to_owned())).collect()
}

/// Insists that these came, and says where they differ first.
fn expect(what: &str, got: &[String], wanted: &[String]) -> Verdict {
    let differs = (0..got.len().max(wanted.len())).find(|at| got.get(*at) != wanted.get(*at));
    let Some(at) = differs else { return Ok(()) };
    let around =
        |lines: &[String]| lines.iter().skip(at.saturating_sub(2)).take(5).cloned().collect();
    let (here, there): (Vec<String>, Vec<String>) = (around(got), around(wanted));
    let (count, all) = (got.len(), wanted.len());
    Err(format!("{what}: {count} of {all} came; message {at}: got {here:?}, wanted {there:?}")
        .into())
}

fn both_ways(kind: Kind) -> Verdict {
    const COUNT: usize = 15;
    let pair = Pair::up(kind)?;
    for (from, to, topic, arrives) in [
        (Side::Ours, Side::Theirs, "out", "there/out"),
        (Side::Theirs, Side::Ours, "in", "here/in"),
    ] {
        let subscriber = pair.subscribe(to, &format!("{arrives}/#"), 3 * COUNT)?;
        let lines = |qos: u8| numbered(&format!("{topic}-{qos}"), COUNT);
        for qos in 0..=2 {
            pair.publish(from, &format!("{topic}/q/{qos}"), qos, &lines(qos))?;
        }
        let messages = subscriber.messages()?;
        for qos in 0..=2 {
            let wanted: Vec<_> = lines(qos).iter().map(|line| format!("{qos} 0 {line}")).collect();
            let topic = format!("{arrives}/q/{qos}");
            expect(&topic, &of_topic(&messages, &topic), &wanted)?;
        }
    }
    // A message retained on one side is retained on the other.
    let mut publisher = pair.publisher(Side::Ours, "out/state", 1, &["-r"])?;
    publisher.send("on")?;
    publisher.finish()?;
    // It may come live first, and wait in the reader's session too.
    wait_until("the message is not retained over there", || {
        let told = pair.subscribe(Side::Theirs, "there/out/state", 1);
        let told = told.and_then(pair::Subscriber::messages);
        told.is_ok_and(|told| told == ["there/out/state 1 1 on"])
    })
}

/// mosquitto ends and comes back while messages flow; messages that wait meanwhile arrive in order,
/// once.
fn restarts(kind: Kind) -> Verdict {
    const COUNT: usize = 120;
    let mut pair = Pair::up(kind)?;
    let subscriber = pair.subscribe(Side::Theirs, "there/out/#", 2 * COUNT)?;
    let topics = ["out/a", "out/b"];
    let mut publishers = Vec::new();
    for topic in topics {
        publishers.push(pair.publisher(Side::Ours, topic, 2, &[])?);
    }
    let lines = numbered("line", COUNT);
    for (number, line) in lines.iter().enumerate() {
        match number {
            40 => pair.end_theirs()?,
            80 => pair.start(Side::Theirs)?,
            _ => std::thread::sleep(Duration::from_millis(5)),
        }
        publishers.iter_mut().try_for_each(|publisher| publisher.send(line))?;
    }
    publishers.into_iter().try_for_each(pair::Publisher::finish)?;
    let messages = subscriber.messages()?;
    let wanted: Vec<_> = lines.iter().map(|line| format!("2 0 {line}")).collect();
    for topic in topics {
        let topic = format!("there/{topic}");
        expect(&topic, &of_topic(&messages, &topic), &wanted)?;
    }
    // And the other way it is subscribed again.
    pair.wait_until_up()?;
    let subscriber = pair.subscribe(Side::Ours, "here/in/#", 1)?;
    pair.publish(Side::Theirs, "in/x", 2, &["after".to_owned()])?;
    expect("here/in/x", &subscriber.messages()?, &["here/in/x 2 0 after".to_owned()])
}

/// Ours is killed with messages that wait for the other, and the other with some for ours.
fn own_end(kind: Kind) -> Verdict {
    const COUNT: usize = 100;
    let mut pair = Pair::up(kind)?;
    let there = pair.subscribe(Side::Theirs, "there/out/#", 2 * COUNT)?;
    let here = pair.subscribe(Side::Ours, "here/in/#", COUNT)?;
    let lines = numbered("line", 2 * COUNT);
    pair.publish(Side::Ours, "out/a", 2, &lines[..COUNT / 2])?;
    pair.end_theirs()?;
    pair.publish(Side::Ours, "out/a", 2, &lines[COUNT / 2..COUNT])?;
    pair.kill_ours()?;
    pair.start(Side::Theirs)?;
    pair.publish(Side::Theirs, "in/a", 2, &lines[..COUNT])?;
    pair.start(Side::Ours)?;
    pair.publish(Side::Ours, "out/a", 2, &lines[COUNT..])?;
    let wanted = |lines: &[String]| -> Vec<String> {
        lines.iter().map(|line| format!("2 0 {line}")).collect()
    };
    let messages = there.messages()?;
    expect("there/out/a", &of_topic(&messages, "there/out/a"), &wanted(&lines))?;
    let messages = here.messages()?;
    expect("here/in/a", &of_topic(&messages, "here/in/a"), &wanted(&lines[..COUNT]))
}

/// The same topics both ways: each message is everywhere once.
fn circles(kind: Kind) -> Verdict {
    let pair = Pair::up(kind)?;
    for (from, to) in [(Side::Ours, Side::Theirs), (Side::Theirs, Side::Ours)] {
        let near = pair.subscribe(from, "loop/#", 4)?;
        let far = pair.subscribe(to, "loop/#", 4)?;
        let lines = numbered("round", 4);
        for line in &lines {
            pair.publish(from, "loop/x", 1, std::slice::from_ref(line))?;
            // Long enough for it to come back.
            std::thread::sleep(Duration::from_millis(100));
        }
        let wanted: Vec<_> = lines.iter().map(|line| format!("loop/x 1 0 {line}")).collect();
        expect("near", &near.messages()?, &wanted)?;
        expect("far", &far.messages()?, &wanted)?;
    }
    Ok(())
}

fn changes(kind: Kind) -> Verdict {
    let pair = Pair::up(kind)?;
    let live = pair.subscribe(Side::Theirs, "q1/out/a", 1)?;
    pair.publish(Side::Ours, "out/a", 1, &["text".to_owned()])?;
    expect("live", &live.messages()?, &["q1/out/a 0 0 <text>".to_owned()])?;
    // A subscriber that comes later gets it as retained; the reader's session knows the filter.
    let later = pair.subscribe(Side::Theirs, "q1/out/+", 1)?;
    expect("retained", &later.messages()?, &["q1/out/a 0 1 <text>".to_owned()])
}

fn logs_in(kind: Kind) -> Verdict {
    let mut pair = Pair::up(kind)?;
    let subscriber = pair.subscribe(Side::Theirs, "there/out/#", 1)?;
    pair.publish(Side::Ours, "out/a", 1, &["hello".to_owned()])?;
    expect("over TLS", &subscriber.messages()?, &["there/out/a 1 0 hello".to_owned()])?;
    let (code, said) = pair.command("test", &["far"])?;
    let all =
        ["TLS in", "certificate verified", "CONNACK", "subscription to ingress in/#", "came back"];
    if code != Some(0) || !all.iter().all(|words| said.contains(words)) {
        return Err(format!("the test ended with {code:?}: {said}").into());
    }
    // A password that is wrong is told, by the test and by the status, and never shown.
    std::fs::write(pair.file("password"), "a secret phrase\n")?;
    let (code, said) = pair.command("test", &[])?;
    if code != Some(112) || !said.contains("refused") || said.contains("a secret phrase") {
        return Err(format!("the test ended with {code:?}: {said}").into());
    }
    pair.kill_ours()?;
    pair.start(Side::Ours)?;
    wait_until("the refusal is not told", || {
        let status = pair.command("status", &[]);
        status.is_ok_and(|(code, said)| code == Some(99) && said.contains("authorized"))
    })
}

/// mosquitto takes ten aliases; more topics than that come with all of theirs.
fn aliases(kind: Kind) -> Verdict {
    const TOPICS: usize = 12;
    const EACH: usize = 5;
    let mut pair = Pair::up(kind)?;
    let subscriber = pair.subscribe(Side::Theirs, "there/out/#", 2 * TOPICS * EACH)?;
    let topics: Vec<String> = (0..TOPICS).map(|number| format!("out/of/{number}")).collect();
    let lines = numbered("line", 2 * EACH);
    let saved = || -> Result<u64, Failed> {
        let metrics = get(pair.metrics(), "/metrics")?;
        let counts =
            metrics.lines().filter(|line| line.starts_with("tacho_publishes_aliased_out_total{"));
        Ok(counts.filter_map(|line| line.split(' ').nth(1)?.parse::<u64>().ok()).sum())
    };
    for topic in &topics {
        pair.publish(Side::Ours, topic, 2, &lines[..EACH])?;
    }
    wait_until("no topic was left out", || saved().is_ok_and(|count| count > EACH as u64))?;
    // A new connection knows none of them.
    pair.end_theirs()?;
    for topic in &topics {
        pair.publish(Side::Ours, topic, 2, &lines[EACH..])?;
    }
    pair.start(Side::Theirs)?;
    let messages = subscriber.messages()?;
    let wanted: Vec<_> = lines.iter().map(|line| format!("2 0 {line}")).collect();
    for topic in &topics {
        let topic = format!("there/{topic}");
        expect(&topic, &of_topic(&messages, &topic), &wanted)?;
    }
    Ok(())
}

fn tells(kind: Kind) -> Verdict {
    let mut pair = Pair::up(kind)?;
    pair.publish(Side::Ours, "out/a", 1, &numbered("line", 5))?;
    let metrics = || get(pair.metrics(), "/metrics").unwrap_or_default();
    wait_until("the messages are not counted as acknowledged", || {
        metrics().lines().any(|line| line == "tacho_bridge_acknowledged_total{bridge=\"far\"} 5")
    })?;
    promtool_checks(&metrics())?;
    let (code, said) = pair.command("status", &["--verbose"])?;
    if code != Some(0) || !said.contains("3/3") || !said.contains("far:") {
        return Err(format!("the status ended with {code:?}: {said}").into());
    }
    let topic = "$SYS/broker/bridges/far/acknowledged";
    wait_until("$SYS does not tell it", || {
        let told = pair.subscribe(Side::Ours, topic, 1).and_then(pair::Subscriber::messages);
        told.is_ok_and(|told| told == [format!("{topic} 0 1 5")])
    })?;
    pair.end_theirs()?;
    wait_until("the end is not told", || {
        pair.command("status", &[])
            .is_ok_and(|(code, said)| code == Some(99) && said.contains("0/3"))
    })?;
    if get(pair.metrics(), "/healthz")? != "ok\n" {
        return Err("a bridge that is down is no reason to be unhealthy".into());
    }
    let (code, said) = pair.command("test", &[])?;
    match code == Some(112) && said.contains("cannot connect") {
        true => Ok(()),
        false => Err(format!("the test ended with {code:?}: {said}").into()),
    }
}
