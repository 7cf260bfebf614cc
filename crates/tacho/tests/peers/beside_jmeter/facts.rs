//! What a recording comes to, in a form that can be kept in a file and compared.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::plan::Plan;
use super::recorder::{Client, Introduction, Message};
use crate::Verdict;

/// The mark of mqtt-jmeter between the time and the text of a message.
const MARK: &[u8] = b"ts_sep_flag";
/// The beginning of a text, in which Tacho keeps what it verifies deliveries by.
const VERIFIED_BYTES: usize = 44;
/// The last pauses of a publisher, by which its pace is judged: while threads start, those that are
/// there are faster.
const PAUSES: usize = 8;

/// The facts of a recording: clients with their fields, filters, streams of messages with their
/// pace, and how clients come.
pub(super) fn of(clients: &[Client]) -> Value {
    let is_of_plan = |client: &&Client| match &client.connect {
        // Not the client that measures round trips.
        Some(introduction) => !introduction.client_id.starts_with("tacho-rtt-"),
        None => false,
    };
    let clients: Vec<&Client> = clients.iter().filter(is_of_plan).collect();
    let those = |is_one: fn(&Client) -> bool| -> Vec<&Client> {
        clients.iter().copied().filter(|client| is_one(client)).collect()
    };
    let publishers = those(|client| !client.messages.is_empty());
    let listeners = those(|client| !client.filters.is_empty());
    let in_flight_max = publishers.iter().map(|one| one.in_flight_max).max();
    json!({
        "clients": counted(clients.iter().filter_map(|client| introduced(client))),
        "filters": counted(listeners.iter().flat_map(|one| filters(one))),
        "streams": streams(&publishers),
        "in_flight_max": in_flight_max,
        "texts_differ": differ(&publishers),
        "publishers_come_every_ms": coming(&publishers),
        "subscribers_come_every_ms": coming(&listeners),
        "farewells_of_publishers": publishers.iter().filter(|one| one.farewell).count(),
    })
}

/// How often each value is there, in the order of the values.
fn counted(values: impl Iterator<Item = String>) -> BTreeMap<String, usize> {
    let mut counted = BTreeMap::new();
    values.for_each(|value| *counted.entry(value).or_default() += 1);
    counted
}

/// The fields of a client's CONNECT; random ends of identifiers as their number of digits.
fn introduced(client: &Client) -> Option<String> {
    let Introduction { client_id, version, clean, keep_alive_s, username, password, has_will } =
        client.connect.as_ref()?;
    let digits = client_id.chars().rev().take_while(char::is_ascii_hexdigit).count();
    let client_id = match digits {
        0..8 => client_id.clone(),
        _ => format!("{}<{digits} digits>", &client_id[..client_id.len() - digits]),
    };
    let access = format!("{username:?} {password:?}");
    Some(format!(
        "broker {} {version} {client_id} clean {clean} keep-alive {keep_alive_s} access {access} \
         will {has_will}",
        client.broker
    ))
}

fn filters(client: &Client) -> Vec<String> {
    let shown =
        |(filter, qos): &(String, u8)| format!("broker {} {filter} QoS {qos}", client.broker);
    client.filters.iter().map(shown).collect()
}

/// The publishers, each with the form, number and pace of its messages.
fn streams(publishers: &[&Client]) -> Vec<Value> {
    let mut streams: Vec<(String, Value)> = publishers
        .iter()
        .map(|client| {
            let forms = counted(client.messages.iter().map(form));
            let forms: Vec<String> = forms.into_keys().collect();
            let form = format!("broker {} {}", client.broker, forms.join(" and "));
            let mut pauses = client.pauses();
            let stream = json!({
                "form": form,
                "messages": client.messages.len(),
                "every_ms": median_ms(pauses.split_off(pauses.len().saturating_sub(PAUSES))),
            });
            (form, stream)
        })
        .collect();
    streams.sort_by(|one, other| one.0.cmp(&other.0));
    streams.into_iter().map(|(_, stream)| stream).collect()
}

/// What all messages of a publisher have in common. Times have as many digits for centuries.
fn form(message: &Message) -> String {
    let Message { topic, qos, retain, payload, .. } = message;
    let is_marked = payload.windows(MARK.len()).any(|bytes| bytes == MARK);
    let bytes = payload.len();
    format!("{topic} QoS {qos} retain {retain} {bytes} bytes marked {is_marked}")
}

/// Has each publisher one text of its own?
fn differ(publishers: &[&Client]) -> bool {
    let texts = publishers.iter().map(|client| counted(client.messages.iter().map(text)));
    let texts: Vec<_> = texts.collect();
    let all = counted(texts.iter().flat_map(|own| own.keys().cloned()));
    texts.iter().all(|own| own.len() == 1) && all.len() == publishers.len()
}

/// The part of a text behind what deliveries are verified by.
fn text(message: &Message) -> String {
    let payload = &message.payload;
    let at = payload.windows(MARK.len()).position(|bytes| bytes == MARK);
    let text = at.map_or(0, |at| at + MARK.len());
    let rest = payload.get(text + VERIFIED_BYTES..).unwrap_or_default();
    String::from_utf8_lossy(rest).into_owned()
}

/// The mean pause between two of the last half of clients: the first ones wait until JMeter has
/// loaded its classes.
fn coming(clients: &[&Client]) -> Option<f64> {
    let mut times: Vec<_> = clients.iter().map(|one| one.connected).collect();
    times.sort_unstable();
    let last = times.split_off(times.len() / 2);
    let pauses = u32::try_from(last.len()).ok()?.checked_sub(1).filter(|pauses| *pauses > 0)?;
    Some(ms((*last.last()? - *last.first()?) / pauses))
}

fn median_ms(mut pauses: Vec<Duration>) -> Option<f64> {
    pauses.sort_unstable();
    pauses.get(pauses.len() / 2).copied().map(ms)
}

fn ms(span: Duration) -> f64 {
    (span.as_secs_f64() * 1e4).round() / 10.0
}

/// Insists that two recordings are of the same plan; `probes` more of ours per publisher are no
/// messages of the plan.
pub(super) fn compare(
    plan: &Plan,
    qos: u8,
    (theirs, ours): (&Value, &Value),
    probes: u64,
) -> Verdict {
    for what in ["clients", "filters", "in_flight_max", "texts_differ"] {
        same(what, &theirs[what], &ours[what])?;
    }
    if plan.shows_ramp(qos) {
        for what in ["publishers_come_every_ms", "subscribers_come_every_ms"] {
            near(what, &theirs[what], &ours[what], 40.0)?;
        }
    }
    if plan.is_finite {
        let what = "farewells_of_publishers";
        same(what, &theirs[what], &ours[what])?;
    }
    let all = |value: &Value| value["streams"].as_array().cloned().unwrap_or_default();
    let (theirs, ours) = (all(theirs), all(ours));
    same("the number of streams", &json!(theirs.len()), &json!(ours.len()))?;
    for (theirs, ours) in theirs.iter().zip(&ours) {
        same("form", &theirs["form"], &ours["form"])?;
        near("every_ms", &theirs["every_ms"], &ours["every_ms"], 5.0)?;
        if plan.is_finite {
            let wanted = theirs["messages"].as_u64().map(|messages| messages + probes);
            same("messages", &json!(wanted), &ours["messages"])?;
        }
    }
    Ok(())
}

fn same(what: &str, theirs: &Value, ours: &Value) -> Verdict {
    match theirs == ours {
        true => Ok(()),
        false => Err(format!("{what}: JMeter {theirs:#}, Tacho {ours:#}").into()),
    }
}

/// At most a tenth apart and so many milliseconds.
fn near(what: &str, theirs: &Value, ours: &Value, more_ms: f64) -> Verdict {
    match (theirs.as_f64(), ours.as_f64()) {
        (Some(one), Some(other)) if (one - other).abs() <= one * 0.1 + more_ms => Ok(()),
        (None, None) => Ok(()),
        _ => Err(format!("{what}: JMeter {theirs}, Tacho {ours}").into()),
    }
}
