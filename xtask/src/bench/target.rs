//! The performance targets, and whether they are met.

use serde::Serialize;

use super::attack::Attack;
use super::connects::Way;
use super::figures::{Figures, grouped, number};

/// A target and its result.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Verdict {
    pub(super) target: String,
    pub(super) bound: Option<Bound>,
    pub(super) unit: &'static str,
    /// Absent if its cases were not measured.
    pub(super) value: Option<f64>,
    /// Absent without a bound or value.
    pub(super) passed: Option<bool>,
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

impl Bound {
    fn holds(self, value: f64) -> bool {
        match self {
            Self::AtMost(limit) => value <= limit,
            Self::AtLeast(limit) => value >= limit,
        }
    }

    pub(super) fn text(self, unit: &str) -> String {
        match self {
            Self::AtMost(limit) => format!("at most {} {unit}", number(limit)),
            Self::AtLeast(limit) => format!("at least {} {unit}", number(limit)),
        }
    }
}

impl Verdict {
    pub(super) fn new(
        target: &str,
        value: Option<f64>,
        unit: &'static str,
        bound: Option<Bound>,
    ) -> Self {
        let passed = value.zip(bound).map(|(value, bound)| bound.holds(value));
        Self { target: target.to_owned(), bound, unit, value, passed }
    }
}

struct Judge<'f> {
    figures: &'f Figures,
    verdicts: Vec<Verdict>,
}

pub(super) const CPU: &str = "cpu_us_per_message";
pub(super) const TIMES: &str = "x";
const P99: &str = "latency_us_p99";

/// Compares medians with the targets.
pub(super) fn judge(figures: &Figures) -> Vec<Verdict> {
    use Bound::{AtLeast, AtMost};
    let mut judge = Judge { figures, verdicts: Vec::new() };
    judge.cpu("QoS 0 at 60K TPS against the floor", "tacho_qos0_60k", "floor_60k", AtMost(1.15));
    judge.cpu("QoS 1 at 60K TPS against the floor", "tacho_qos1_60k", "floor_60k", AtMost(1.45));
    judge.one("QoS 2 at 30K TPS", "tacho_qos2_30k", CPU, "us per message", None);
    for (qos, tps, limit) in [(0, 60, 0.88), (1, 60, 0.75), (0, 20, 0.95), (1, 20, 0.95)] {
        judge.cpu(
            &format!("QoS {qos} at {tps}K TPS against mosquitto"),
            &format!("tacho_qos{qos}_{tps}k"),
            &format!("mosquitto_qos{qos}_{tps}k"),
            AtMost(limit),
        );
    }
    for (qos, limit) in [(0, 4.0), (1, 5.5)] {
        judge.one(
            &format!("fan-out 10 to 2,000, 100K out/s, QoS {qos}"),
            &format!("tacho_fanout_qos{qos}"),
            "cpu_us_per_delivery",
            "us per delivery",
            Some(AtMost(limit)),
        );
    }
    for (qos, limit) in [(0, 2e6), (1, 1e6)] {
        judge.one(
            &format!("closed mode, window 16, 100 to 100, QoS {qos}"),
            &format!("tacho_closed_qos{qos}"),
            "tps",
            "TPS",
            Some(AtLeast(limit)),
        );
    }
    for qos in [0, 1] {
        judge.cpu(
            &format!("two shards on one core against one, 60K TPS, QoS {qos}"),
            &format!("tacho2_qos{qos}_60k"),
            &format!("tacho_qos{qos}_60k"),
            AtMost(1.25),
        );
    }
    judge.one("p99 at 30K TPS, QoS 1", "tacho_qos1_30k", P99, "us", Some(AtMost(2000.0)));
    judge_forwarder(&mut judge);
    judge_idle(&mut judge);
    judge_share_and_routes(&mut judge);
    judge_population(&mut judge);
    judge.verdicts
}

/// Beside a bare forwarder, which does nothing but pass on.
fn judge_forwarder(judge: &mut Judge<'_>) {
    use Bound::AtMost;
    for (qos, tps) in [(0, 20), (0, 60), (1, 20), (1, 60)] {
        let of = |subject| format!("{subject}_qos{qos}_{tps}k");
        let share = judge.share(&of("tacho"), &of("forwarder"), CPU);
        judge.record(&format!("QoS {qos} at {tps}K TPS against a forwarder"), share, TIMES, None);
    }
    let share = judge.share("tacho_qos1_60k", "forwarder_qos1_60k", P99);
    judge.push("p99 there, QoS 1 at 60K TPS", share, TIMES, AtMost(2.0));
    for qos in [0, 1] {
        let of = |subject| format!("{subject}_fanout160_qos{qos}");
        let share = judge.share(&of("tacho"), &of("forwarder"), "cpu_us_per_delivery");
        let target = format!("fan-out of 160K out/s, QoS {qos}, against a forwarder");
        judge.push(&target, share, TIMES, AtMost(0.85));
    }
    let target = "p99 of 100 pairs beside a fan-out of 150K out/s";
    judge.one(target, "tacho_beside_fanout", P99, "us", Some(AtMost(10_000.0)));
    judge.one("the same beside a forwarder", "forwarder_beside_fanout", P99, "us", None);
}

/// Memory of clients that do nothing.
fn judge_idle(judge: &mut Judge<'_>) {
    use Bound::AtMost;
    for (metric, of, limit) in [
        ("rss_bytes_per_connection", "an idle connection", 1024.0),
        ("rss_bytes_per_subscribed", "an idle connection with a subscription", 2048.0),
    ] {
        let target = format!("memory of {of}");
        judge.one(&target, "tacho_idle_10k", metric, "bytes", Some(AtMost(limit)));
        let share = judge.share("tacho_idle_10k", "mosquitto_idle_10k", metric);
        judge.record(&format!("{target} against mosquitto"), share, TIMES, None);
    }
}

/// The generator's share, and topics of which many subscriptions know.
fn judge_share_and_routes(judge: &mut Judge<'_>) {
    use Bound::AtMost;
    let case = "tacho_qos1_60k";
    let generator = judge.figures.median(case, "generator_cpu_percent");
    let broker = judge.figures.median(case, "broker_cpu_percent");
    let share = ratio(generator, broker);
    judge.push("generator's CPU against the broker's, 60K TPS, QoS 1", share, TIMES, AtMost(1.0));
    let against = [
        ("cached topics among wildcards against exact ones", "wildcards", 1.2),
        ("never-seen topics among wildcards against exact ones", "unseen", 2.0),
        ("exact topics while 1,000 subscriptions change per second", "churn", 1.1),
    ];
    for (target, case, limit) in against {
        let case = format!("tacho_routes_{case}");
        judge.cpu(target, &case, "tacho_routes_exact", AtMost(limit));
    }
}

/// Many subscriptions, bursts and clients that break the rules.
fn judge_population(judge: &mut Judge<'_>) {
    use Bound::AtMost;
    let case = "tacho_subscribe_1m";
    judge.one("1,000,000 subscriptions", case, "subscribe_s", "s", Some(AtMost(10.0)));
    let bytes = "rss_bytes_per_subscription";
    judge.one("memory per subscription", case, bytes, "bytes", Some(AtMost(300.0)));
    judge.cpu(
        "fan-in to shared groups against symmetric, 30K TPS, QoS 1",
        "tacho_fanin_qos1_30k",
        "tacho_qos1_30k",
        AtMost(1.2),
    );
    let case = "tacho_burst_10k";
    judge.one("last of 10,000 subscribers", case, "burst_us_max", "us", Some(AtMost(60_000.0)));
    judge.one("p99 of 100 pairs beside", case, P99, "us", Some(AtMost(10_000.0)));
    judge.one("p99 of good clients while 1,000 bad ones try", "tacho_abuse_20k", P99, "us", None);
    let lost = Some(AtMost(0.0));
    judge.one("lost by good clients meanwhile", "tacho_abuse_20k", "lost", "messages", lost);
    let case = "tacho_partial_20k";
    judge.one("p99 of good clients while 1,000 stop within a packet", case, P99, "us", None);
    judge.one("lost by good clients meanwhile", case, "lost", "messages", lost);
    let (ratio, left) = (Some(AtMost(1.3)), Some(AtMost(64e6)));
    let what = "memory per byte of an unfinished packet";
    judge.one(what, case, "rss_bytes_per_partial_byte", "bytes", ratio);
    judge.one("memory left by clients that left", case, "rss_bytes_left", "bytes", left);
    judge_leavers(judge);
    judge_connects(judge);
    judge_attacks(judge);
}

/// Many subscriptions that end at once.
fn judge_leavers(judge: &mut Judge<'_>) {
    use Bound::AtMost;
    for (case, what) in [("tacho_leaving_20k", ""), ("tacho_leaving_20k_shared", "shared ")] {
        let target =
            |figure| format!("{figure} of good clients while a million {what}subscriptions end");
        let (p99, worst) = (Some(AtMost(20_000.0)), Some(AtMost(50_000.0)));
        judge.one(&target("p99"), case, P99, "us", p99);
        judge.one(&target("worst"), case, "latency_us_max", "us", worst);
        judge.one(&target("lost"), case, "lost", "messages", Some(AtMost(0.0)));
    }
}

/// Connections one after the other, and all at once.
fn judge_connects(judge: &mut Judge<'_>) {
    for way in Way::ALL {
        let (what, name) = (way.what(), way.name());
        let [tacho, mosquitto] =
            ["tacho", "mosquitto"].map(|subject| format!("{subject}_connect_{name}"));
        let cpu = judge.share(&tacho, &mosquitto, "cpu_us_per_login");
        judge.record(
            &format!("CPU of a connection by {what}, against mosquitto"),
            cpu,
            TIMES,
            None,
        );
        let most = judge.share(&tacho, &mosquitto, "logins_per_s");
        judge.record(&format!("most connections by {what}, against mosquitto"), most, TIMES, None);
        for subject in ["tacho", "mosquitto"] {
            let case = format!("{subject}_connect_storm_{name}");
            let clients = grouped(way.storm_clients() as f64);
            let target = format!("{clients} come back by {what}, {subject}: 99 % connected");
            judge.one(&target, &case, "storm_connected_ms_p99", "ms", None);
            let beside =
                format!("{clients} come back by {what}, {subject}: p99 of 50 pairs beside");
            judge.one(&beside, &case, P99, "us", None);
        }
    }
}

/// What is legal and too much.
fn judge_attacks(judge: &mut Judge<'_>) {
    use Bound::AtMost;
    for attack in Attack::ALL {
        let (tacho, bare) = (
            format!("tacho_attack_{}", attack.name()),
            format!("forwarder_attack_{}", attack.name()),
        );
        let what = attack.what();
        let (p99, worst) = (Some(AtMost(20_000.0)), Some(AtMost(50_000.0)));
        let target = |figure| format!("{figure} of an honest client while: {what}");
        judge.one(&target("p99"), &tacho, P99, "us", p99);
        judge.one(&target("worst"), &tacho, "latency_us_max", "us", worst);
        judge.one(&target("lost"), &tacho, "lost", "messages", Some(AtMost(0.0)));
        judge.one("the same beside a bare forwarder: worst", &bare, "latency_us_max", "us", None);
        judge.one("CPU of the longest turn", &tacho, "turn_cpu_us_max", "us", None);
        judge.one("units of work of the longest turn", &tacho, "turn_units_max", "units", None);
        if attack == Attack::IdleHttp {
            let metrics = Some(AtMost(1e6));
            judge.one("longest answer of /metrics", &tacho, "metrics_us_max", "us", metrics);
        }
    }
}

/// The same for the durability cases.
pub(super) fn judge_durability(figures: &Figures) -> Vec<Verdict> {
    use Bound::{AtLeast, AtMost};
    let mut judge = Judge { figures, verdicts: Vec::new() };
    let (p99, rate) = (P99, "in_per_s");
    judge.one("the disk: p99 of 4 KiB written and synced", "disk", "fdatasync_us_p99", "us", None);
    let disk_us = figures.median("disk", "fdatasync_us_p99").unwrap_or(0.0);
    for bytes in [32, 1024] {
        judge.one(
            &format!(
                "p99 of 300 pairs at 50/s, QoS 1, {bytes} B, fsynced (8 ms, or 4 x the disk's)"
            ),
            &format!("durable_pairs_{bytes}"),
            p99,
            "us",
            Some(AtMost((4.0 * disk_us).max(8000.0))),
        );
    }
    for bytes in [32, 1024] {
        let (case, memory) =
            (format!("durable_closed_qos1_{bytes}"), format!("memory_closed_qos1_{bytes}"));
        let share = ratio(figures.median(&case, rate), figures.median(&memory, rate));
        let target = format!("most at QoS 1, {bytes} B, fsynced against memory");
        judge.push(&target, share, TIMES, AtLeast(0.6));
        judge.one(
            &format!("most at QoS 1, {bytes} B, fsynced"),
            &case,
            rate,
            "messages/s in",
            Some(AtLeast(1e5)),
        );
        judge.one(&format!("p99 there, {bytes} B"), &case, p99, "us", Some(AtMost(25_000.0)));
    }
    let (two, one) = ("durable_closed_qos2_32", "durable_closed_qos1_32");
    let share = ratio(figures.median(two, rate), figures.median(one, rate));
    judge.push("most at QoS 2 against QoS 1, 32 B, fsynced", share, TIMES, AtLeast(0.5));
    for qos in [0, 1, 2] {
        judge.one(
            &format!("p99 of 5,000 publishers to a shared group of 50, 1 KiB, QoS {qos}, fsynced"),
            &format!("durable_share_qos{qos}"),
            p99,
            "us",
            Some(AtMost(8000.0)),
        );
    }
    let case = "durable_offline";
    let restart = Some(AtMost(5000.0));
    judge.one("1,000,000 messages kept: restart to serving", case, "restart_ms", "ms", restart);
    let drained = Some(AtLeast(1e5));
    judge.one("drained on resume", case, "drained_per_s", "messages/s", drained);
    let lost = Some(AtMost(0.0));
    judge.one("acknowledged, but lost by a kill", case, "acknowledged_lost", "messages", lost);
    judge.one("memory with all queued", case, "rss_bytes_full", "bytes", None);
    judge.one("memory with all restored", case, "rss_bytes_restarted", "bytes", None);
    let bodies = ratio(figures.median("durable_fanout", "body_bytes_per_message"), Some(1024.0));
    let target = "payload written for 1 KiB to 1,000 sessions";
    judge.push(target, bodies, TIMES, AtMost(1.2));
    let disk = "disk_bytes_per_message";
    let target = "on the disk for 1 KiB to 1,000 sessions, entries and all";
    judge.one(target, "durable_fanout", disk, "bytes", None);
    let disk = "disk_bytes_per_payload_byte";
    let target = "on the disk per byte of payload, 1 KiB, preparing segments included";
    judge.one(target, "durable_bytes", disk, "bytes", None);
    let written = "written_per_payload_byte";
    let bytes = Some(AtMost(2.0));
    judge.one("written per byte of payload, 1 KiB", "durable_bytes", written, "bytes", bytes);
    judge.verdicts
}

fn ratio(value: Option<f64>, reference: Option<f64>) -> Option<f64> {
    Some(value? / reference.filter(|reference| *reference > 0.0)?)
}

impl Judge<'_> {
    /// CPU per message of one case relative to another.
    fn cpu(&mut self, target: &str, case: &str, reference: &str, bound: Bound) {
        self.push(target, self.share(case, reference, CPU), TIMES, bound);
    }

    /// A metric of one case relative to that of another.
    fn share(&self, case: &str, reference: &str, metric: &str) -> Option<f64> {
        ratio(self.figures.median(case, metric), self.figures.median(reference, metric))
    }

    /// One metric of one case.
    fn one(
        &mut self,
        target: &str,
        case: &str,
        metric: &str,
        unit: &'static str,
        bound: Option<Bound>,
    ) {
        let value = self.figures.median(case, metric);
        self.record(target, value, unit, bound);
    }

    fn push(&mut self, target: &str, value: Option<f64>, unit: &'static str, bound: Bound) {
        self.record(target, value, unit, Some(bound));
    }

    fn record(
        &mut self,
        target: &str,
        value: Option<f64>,
        unit: &'static str,
        bound: Option<Bound>,
    ) {
        self.verdicts.push(Verdict::new(target, value, unit, bound));
    }
}
