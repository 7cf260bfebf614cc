//! InfluxDB in the schema of JMeter's backend listener, for dashboards that are made for it.
//!
//! Measurement `jmeter`, a point per transaction and outcome every 5 s, as JMeter's
//! InfluxdbBackendListenerClient sends them. Times are milliseconds. The percentiles are those of
//! the 5 s before the time stamp, which a tag `window=5s` says.

use super::line::{FieldValue, Lines};
use super::{Encode, OutputBody};
use crate::buckets::Buckets;
use crate::point::{OutputItem, OutputNote, OutputPoint, PointSeries, PointTag, PointTags};

/// JMeter's interval between points.
const WINDOW_MS: u64 = 5_000;

/// Labels of JMeter's MQTT samplers.
const CONNECT: &str = "MQTT Connect";
const PUBLISH: &str = "MQTT Pub Sampler";
const SUBSCRIBE: &str = "MQTT Sub Sampler";

/// Encodes loads as JMeter's transactions.
#[derive(Debug)]
pub(super) struct JMeter {
    /// The tag `application`; the scenario's name otherwise.
    application: Option<String>,
    lines: Lines,
    open: Option<OpenWindow>,
    /// The load whose messages the broker acknowledges.
    acknowledged: Option<PointTags>,
}

/// What happened since the last points.
#[derive(Debug)]
struct OpenWindow {
    start_ms: u64,
    end_ms: u64,
    tags: PointTags,
    connect: Transaction,
    /// What was written; [`JMeter::close`] decides whether that counts.
    publish: Transaction,
    acked: f64,
    subscribe: Transaction,
    /// Connected clients: least, most, sum of and number of intervals.
    connected: (f64, f64, f64, f64),
    started: f64,
    ended: f64,
    sent_bytes: f64,
    received_bytes: f64,
}

/// One label.
#[derive(Debug, Default)]
struct Transaction {
    ok: f64,
    failed: f64,
    times: Buckets,
}

impl JMeter {
    pub(super) fn new(application: Option<String>) -> Self {
        Self { application, lines: Lines::default(), open: None, acknowledged: None }
    }
}

impl Encode for JMeter {
    fn take(&mut self, item: &OutputItem) {
        match item {
            OutputItem::Point(point) if point.series == PointSeries::Load => {
                let full = |open: &OpenWindow| {
                    open.tags != point.tags || point.window.end_ms > open.start_ms + WINDOW_MS
                };
                if self.open.as_ref().is_some_and(full) {
                    self.close();
                }
                self.open.get_or_insert_with(|| OpenWindow::new(point)).add(point);
            }
            OutputItem::Note(note) if matches!(note.kind, "started" | "ended") => self.note(note),
            OutputItem::Point(_) | OutputItem::Note(_) => {}
            OutputItem::End => self.close(),
        }
    }

    fn pending(&self) -> u64 {
        self.lines.count()
    }

    fn body(&mut self) -> Option<OutputBody> {
        self.lines.body()
    }
}

impl JMeter {
    fn application(&self, tags: &PointTags) -> String {
        let own = || tags.get(PointTag::Scenario).unwrap_or("tacho").to_owned();
        self.application.clone().unwrap_or_else(own)
    }

    fn note(&mut self, note: &OutputNote) {
        // A point of the window would be later than the end.
        self.close();
        let application = self.application(&note.tags);
        let run = note.tags.get(PointTag::Run).unwrap_or_default();
        let tags = [("application", application.as_str()), ("title", "ApacheJMeter"), ("run", run)];
        let text = format!("{run} {}", note.kind);
        self.lines.add("events", &tags, &[("text", FieldValue::Text(&text))], note.at_ms);
    }

    /// Sends the points of the window that is open.
    fn close(&mut self) {
        let Some(mut open) = self.open.take() else { return };
        // A sample is an acknowledgement, also where none came for a while. At QoS 0 there are
        // none: what was written counts.
        if open.acked > 0.0 {
            self.acknowledged = Some(open.tags.clone());
        }
        if self.acknowledged.as_ref() == Some(&open.tags) {
            open.publish.ok = open.acked;
        }
        let application = self.application(&open.tags);
        let own = |tag| open.tags.get(tag).unwrap_or_default();
        let base = [
            ("application", application.as_str()),
            ("run", own(PointTag::Run)),
            ("step", own(PointTag::Step)),
            ("window", "5s"),
        ];
        let at_ms = open.end_ms;
        let mut all = Transaction::default();
        for (label, transaction, sent, received) in [
            (CONNECT, &open.connect, 0.0, 0.0),
            (PUBLISH, &open.publish, open.sent_bytes, 0.0),
            (SUBSCRIBE, &open.subscribe, 0.0, open.received_bytes),
        ] {
            all.add(transaction);
            let bytes = [("sb", FieldValue::Float(sent)), ("rb", FieldValue::Float(received))];
            for (outcome, count, times) in [
                ("all", transaction.ok + transaction.failed, Some(&transaction.times)),
                ("ok", transaction.ok, Some(&transaction.times)),
                ("ko", transaction.failed, None),
            ] {
                if count == 0.0 {
                    continue;
                }
                let tags = [&base[..], &[("transaction", label), ("statut", outcome)]].concat();
                let mut fields = vec![("count", FieldValue::Float(count))];
                fields.extend(times.into_iter().flat_map(mean_and_range));
                fields.extend(times.into_iter().flat_map(percentiles));
                if outcome == "all" {
                    fields.extend(bytes);
                }
                self.lines.add("jmeter", &tags, &fields, at_ms);
            }
        }
        let count = all.ok + all.failed;
        if count > 0.0 {
            let tags = [&base[..], &[("transaction", "all"), ("statut", "all")]].concat();
            let mut fields = vec![
                ("count", FieldValue::Float(count)),
                ("countError", FieldValue::Float(all.failed)),
                ("hit", FieldValue::Float(count)),
                ("sb", FieldValue::Float(open.sent_bytes)),
                ("rb", FieldValue::Float(open.received_bytes)),
            ];
            fields.extend(mean_and_range(&all.times));
            fields.extend(percentiles(&all.times));
            self.lines.add("jmeter", &tags, &fields, at_ms);
        }
        let (least, most, sum, number) = open.connected;
        let fields = [
            ("minAT", FieldValue::Float(least)),
            ("maxAT", FieldValue::Float(most)),
            ("meanAT", FieldValue::Float((sum / number).round())),
            ("startedT", FieldValue::Float(open.started)),
            ("endedT", FieldValue::Float(open.ended)),
        ];
        let tags = [&base[..], &[("transaction", "internal")]].concat();
        self.lines.add("jmeter", &tags, &fields, at_ms);
    }
}

impl OpenWindow {
    fn new(point: &OutputPoint) -> Self {
        Self {
            start_ms: point.window.start_ms,
            end_ms: point.window.end_ms,
            tags: point.tags.clone(),
            connect: Transaction::default(),
            publish: Transaction::default(),
            acked: 0.0,
            subscribe: Transaction::default(),
            connected: (f64::INFINITY, f64::NEG_INFINITY, 0.0, 0.0),
            started: 0.0,
            ended: 0.0,
            sent_bytes: 0.0,
            received_bytes: 0.0,
        }
    }

    fn add(&mut self, point: &OutputPoint) {
        let figure = |name: &str| {
            let found = point.figures.iter().find(|one| one.name == name && one.part.is_none());
            found.map_or(0.0, |figure| figure.value)
        };
        let times = |name: &str| {
            let found = point.latencies.iter().find(|(known, _)| *known == name);
            found.map_or_else(Buckets::default, |(_, buckets)| buckets.clone())
        };
        self.end_ms = point.window.end_ms;
        let transaction = |ok, failed, times| Transaction { ok, failed, times };
        self.connect.add(&transaction(
            figure("connects"),
            figure("connect_failures"),
            times("connect_latency"),
        ));
        self.acked += figure("publish_acked");
        self.publish.add(&transaction(
            figure("published"),
            figure("publish_failures"),
            times("ack_latency"),
        ));
        self.subscribe.add(&transaction(
            figure("received"),
            figure("subscribe_failures"),
            times("e2e_latency"),
        ));
        let now = figure("connected");
        let (least, most, sum, number) = self.connected;
        self.connected = (least.min(now), most.max(now), sum + now, number + 1.0);
        self.started += figure("connects");
        self.ended += figure("disconnects");
        self.sent_bytes += figure("sent_bytes");
        self.received_bytes += figure("received_bytes");
    }
}

impl Transaction {
    fn add(&mut self, other: &Self) {
        self.ok += other.ok;
        self.failed += other.failed;
        self.times.add(&other.times);
    }
}

fn ms(us: f64) -> FieldValue<'static> {
    FieldValue::Float(us / 1e3)
}

fn mean_and_range(times: &Buckets) -> Vec<(&'static str, FieldValue<'static>)> {
    let mean = times.mean_us().map(|mean| ("avg", ms(mean)));
    let range = [("min", times.min_us()), ("max", times.max_us())];
    let range = range.into_iter().filter_map(|(name, us)| us.map(|us| (name, ms(us as f64))));
    mean.into_iter().chain(range).collect()
}

/// The names are Java's floating-point numbers. As JMeter does, however few the samples are.
fn percentiles(times: &Buckets) -> Vec<(&'static str, FieldValue<'static>)> {
    let shares = [("pct99.0", 0.99), ("pct95.0", 0.95), ("pct90.0", 0.9)];
    let some = shares.into_iter().filter(|_| !times.is_empty());
    some.map(|(name, share)| (name, ms(times.at(share) as f64))).collect()
}

#[cfg(test)]
mod tests {
    use hdrhistogram::Histogram;

    use super::*;
    use crate::point::{PointFigure, PointWindow};

    fn times(values: impl IntoIterator<Item = u64>) -> Buckets {
        let mut histogram = Histogram::new(3).expect("three digits");
        values.into_iter().for_each(|value| histogram.record(value).expect("grows"));
        Buckets::of(&histogram)
    }

    fn second(number: u64) -> OutputItem {
        let tags = PointTags::default().with(PointTag::Run, "r").with(PointTag::Scenario, "s");
        let counts = [
            ("published", 10),
            ("publish_acked", 9),
            ("publish_failures", 1),
            ("received", 20),
            ("sent_bytes", 100),
            ("received_bytes", 200),
        ];
        let mut figures: Vec<PointFigure> =
            counts.into_iter().map(|(name, count)| PointFigure::count(name, count)).collect();
        figures.push(PointFigure::gauge("connected", number as f64));
        OutputItem::Point(Box::new(OutputPoint {
            series: PointSeries::Load,
            tags,
            window: PointWindow {
                start_ms: number * 1_000,
                end_ms: (number + 1) * 1_000,
                phase: "measure".to_owned(),
                measured: Some(true),
            },
            figures,
            latencies: vec![
                // A second later, a tenth of a millisecond slower.
                ("e2e_latency", times([100 * (number + 1); 20])),
                ("ack_latency", times([500; 9])),
            ],
            statistics: Vec::new(),
            row: None,
        }))
    }

    #[test]
    fn five_seconds_make_one_point_per_transaction_and_outcome() {
        let mut jmeter = JMeter::new(None);
        (0..6).for_each(|number| jmeter.take(&second(number)));
        let text = |body: Option<OutputBody>| {
            String::from_utf8(body.unwrap_or_default().bytes).expect("UTF-8")
        };
        let first = text(jmeter.body());
        let base = "jmeter,application=s,run=r,statut=";
        let publish = "transaction=MQTT\\ Pub\\ Sampler,window=5s";
        let receive = "transaction=MQTT\\ Sub\\ Sampler,window=5s";
        let pub_times = "avg=0.5,min=0.5,max=0.5,pct99.0=0.5,pct95.0=0.5,pct90.0=0.5";
        let e2e_times = "avg=0.3,min=0.1,max=0.5,pct99.0=0.5,pct95.0=0.5,pct90.0=0.5";
        let lines: Vec<&str> = first.lines().collect();
        assert_eq!(
            lines,
            [
                format!("{base}all,{publish} count=50,{pub_times},sb=500,rb=0 5000"),
                format!("{base}ok,{publish} count=45,{pub_times} 5000"),
                format!("{base}ko,{publish} count=5 5000"),
                format!("{base}all,{receive} count=100,{e2e_times},sb=0,rb=1000 5000"),
                format!("{base}ok,{receive} count=100,{e2e_times} 5000"),
                format!(
                    "{base}all,transaction=all,window=5s count=150,countError=5,hit=150,sb=500,\
                     rb=1000,avg={},min=0.1,max=0.5,pct99.0=0.5,pct95.0=0.5,pct90.0=0.5 5000",
                    (100.0 * 300.0 + 45.0 * 500.0) / 145.0 / 1e3
                ),
                "jmeter,application=s,run=r,transaction=internal,window=5s \
                 minAT=0,maxAT=4,meanAT=2,startedT=0,endedT=0 5000"
                    .to_owned(),
            ]
        );
        jmeter.take(&OutputItem::End);
        assert!(text(jmeter.body()).contains("count=10,"), "the last window is shorter");
    }

    /// A second without acknowledgements counted what was written, and the next one again.
    #[test]
    fn messages_are_counted_once_when_acknowledgements_are_late() {
        let mut jmeter = JMeter::new(None);
        for (number, acked) in [(0, 10), (5, 0), (10, 20)] {
            let OutputItem::Point(mut point) = second(number) else { panic!("a point") };
            point
                .figures
                .retain(|figure| !["publish_acked", "publish_failures"].contains(&&*figure.name));
            point.figures.push(PointFigure::count("publish_acked", acked));
            jmeter.take(&OutputItem::Point(point));
        }
        jmeter.take(&OutputItem::End);
        let text = String::from_utf8(jmeter.body().expect("lines").bytes).expect("UTF-8");
        let counts: Vec<&str> = text
            .lines()
            .filter(|line| line.contains("statut=ok,transaction=MQTT\\ Pub"))
            .filter_map(|line| line.split("count=").nth(1)?.split(',').next())
            .collect();
        assert_eq!(counts, ["10", "20"], "{text}");
    }

    #[test]
    fn annotations_are_those_of_the_listener() {
        let mut jmeter = JMeter::new(Some("mine".to_owned()));
        jmeter.take(&OutputItem::Note(OutputNote {
            at_ms: 9,
            tags: PointTags::default().with(PointTag::Run, "r"),
            kind: "started",
            text: String::new(),
        }));
        let body = jmeter.body().expect("a line").bytes;
        let line = "events,application=mine,run=r,title=ApacheJMeter text=\"r started\" 9\n";
        assert_eq!(String::from_utf8(body).expect("UTF-8"), line);
    }
}
