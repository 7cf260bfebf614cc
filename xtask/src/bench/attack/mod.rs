//! An honest client while attackers do what is legal and too much: what it sees beside Tacho, and
//! beside a bare forwarder under the same attack.
//!
//! Attackers and honest client share the generator's core, so that the figures beside the forwarder
//! are what this machine does to an honest client anyway. A round from which the hypervisor took
//! more than 2 % is discarded.

mod attackers;
mod honest;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};

use super::figures::Sample;
use super::machine::Steal;
use super::metrics::largest;
use attackers::Attacker;
use honest::Honest;

const STEAL_PERCENT_MAX: f64 = 2.0;
/// For an answer of the broker's HTTP server.
const PATIENCE: Duration = Duration::from_secs(30);

/// What attackers do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attack {
    /// A QoS 0 flood to subscribers that do not read.
    Flood,
    /// Messages of QoS 1 to subscribers that read and never acknowledge.
    NoAcknowledgements,
    /// A million retained topics, replayed again and again while more come.
    Retained,
    /// 6,000 clients with wills go at once.
    Wills,
    /// SUBSCRIBE and UNSUBSCRIBE of 1,000 filters each, again and again, and some of 200,000.
    LongRequests,
    /// HTTP connections with half a request, or none.
    IdleHttp,
}

impl Attack {
    pub(super) const ALL: [Self; 6] = [
        Self::Flood,
        Self::NoAcknowledgements,
        Self::Retained,
        Self::Wills,
        Self::LongRequests,
        Self::IdleHttp,
    ];

    /// Part of its cases' names.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Flood => "flood",
            Self::NoAcknowledgements => "unacked",
            Self::Retained => "retained",
            Self::Wills => "wills",
            Self::LongRequests => "requests",
            Self::IdleHttp => "http",
        }
    }

    pub(super) fn what(self) -> &'static str {
        match self {
            Self::Flood => "50K messages/s of QoS 0 to 20 subscribers that do not read",
            Self::NoAcknowledgements => "2K messages/s of QoS 1 to 200 that never acknowledge",
            Self::Retained => {
                "a million retained topics, replayed 4 times a second while more come"
            }
            Self::Wills => "6,000 clients with wills go at once",
            Self::LongRequests => "8 clients subscribe to 1,000 filters and end them, all the time",
            Self::IdleHttp => "200 HTTP connections with half a request or none",
        }
    }
}

/// What is attacked.
#[derive(Clone, Copy)]
pub(super) struct Victim {
    pub(super) port: u16,
    /// Where it serves its metrics, if it does.
    pub(super) http: Option<SocketAddr>,
}

/// Measures one attack for so long.
pub(super) fn measure(
    mut sample: Sample,
    attack: Attack,
    victim: Victim,
    length: Duration,
) -> Result<Sample> {
    crate::floor::raise_descriptor_limit()?;
    let attacker = Attacker::prepare(attack, victim.port, victim.http)?;
    let steal = Steal::look()?;
    let honest = Honest::start(victim.port)?;
    let stop = Arc::<AtomicBool>::default();
    let stopped = Arc::clone(&stop);
    let attacking = thread::Builder::new()
        .name("attacker".to_owned())
        .spawn(move || attacker.run(&stopped))
        .context("cannot start a thread")?;
    let scrape = watch(victim.http, length);
    stop.store(true, Ordering::Relaxed);
    let attacked = attacking.join().map_err(|_| anyhow!("the attacker panicked"))?;
    let seen = honest.end()?;
    attacked.context("the attack was not what it should be")?;
    let percent = steal.percent_since()?;
    if percent > STEAL_PERCENT_MAX {
        sample.verdict = "discarded".to_owned();
        sample.reasons.push(format!("the hypervisor took {percent:.1} % of the time"));
        return Ok(sample);
    }
    seen.tell(&mut sample);
    if victim.http.is_some() {
        let scrape = scrape?;
        sample.set("metrics_us_max", Some(scrape.worst.as_secs_f64() * 1e6));
        let seconds = |name| largest(&scrape.text, name).map(|seconds| seconds * 1e6);
        sample.set("turn_us_max", seconds("tacho_turn_seconds_max"));
        sample.set("turn_cpu_us_max", seconds("tacho_turn_cpu_seconds_max"));
        sample.set("turn_units_max", largest(&scrape.text, "tacho_turn_units_max"));
    }
    Ok(sample)
}

/// The metrics at the end, and the longest that they took to come.
struct Scrape {
    text: String,
    worst: Duration,
}

/// Lets the time pass, and asks for the metrics twice a second.
fn watch(http: Option<SocketAddr>, length: Duration) -> Result<Scrape> {
    let end = Instant::now() + length;
    let mut last = Ok(Scrape { text: String::new(), worst: Duration::ZERO });
    let mut worst = Duration::ZERO;
    while Instant::now() < end {
        thread::sleep(Duration::from_millis(500));
        let Some(http) = http else { continue };
        let begun = Instant::now();
        let answer = metrics(http);
        // None at all is no quick one.
        worst = worst.max(if answer.is_ok() { begun.elapsed() } else { PATIENCE });
        last = answer.map(|text| Scrape { text, worst });
    }
    last
}

fn metrics(http: SocketAddr) -> Result<String> {
    let mut stream = TcpStream::connect(http).context("cannot connect to the metrics")?;
    stream.set_read_timeout(Some(PATIENCE)).context("cannot set a timeout")?;
    let request = format!("GET /metrics HTTP/1.1\r\nHost: {http}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).context("cannot ask for the metrics")?;
    let mut text = String::new();
    stream.read_to_string(&mut text).context("the metrics do not come")?;
    Ok(text)
}
