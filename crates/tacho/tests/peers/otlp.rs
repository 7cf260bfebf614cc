//! OpenTelemetry's collector takes what a run sends, and reads what the run's record says.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;

use libtest_mimic::{Failed, Trial};

use crate::process::{Peer, Running, free_port, wait_for_port};
use crate::sending::run;
use crate::{Verdict, trial};

/// A bucket of an exponential histogram is so much wider than its lower bound, by its scale 8.
const BUCKET_WIDTH: f64 = 0.002_712;
/// The collector shows seconds to the microsecond.
const SHOWN_S: f64 = 1e-6;

pub(crate) fn register(trials: &mut Vec<Trial>) {
    for temporality in ["cumulative", "delta"] {
        let name = format!("the_collector_reads_{temporality}_figures_as_the_record_has_them");
        trials.push(trial(name, &[Peer::OtelCollector], move || reads(temporality)));
    }
}

/// A collector that shows each metric in words; what it says goes into a file.
fn collector(folder: &Path) -> Result<(Running, u16), Failed> {
    let port = free_port()?;
    let config = folder.join("collector.yaml");
    let text = format!(
        "receivers: {{otlp: {{protocols: {{http: {{endpoint: '127.0.0.1:{port}'}}}}}}}}\n\
         exporters: {{debug: {{verbosity: detailed, use_internal_logger: false}}}}\n\
         service:\n  telemetry: {{metrics: {{level: none}}}}\n  \
         pipelines: {{metrics: {{receivers: [otlp], exporters: [debug]}}}}\n"
    );
    fs::write(&config, text)?;
    let mut command = Peer::OtelCollector.command()?;
    command.arg("--config").arg(format!("file:{}", config.display()));
    command.stdout(Stdio::from(File::create(folder.join("said"))?));
    let running = Running::start(command)?;
    wait_for_port(port)?;
    Ok((running, port))
}

/// A data point, as the collector shows it.
#[derive(Clone, Debug, Default)]
struct DataPoint {
    metric: String,
    kind: String,
    unit: String,
    temporality: String,
    labels: BTreeMap<String, String>,
    value: f64,
    /// Of histograms: bounds above, and counts.
    buckets: Vec<(f64, u64)>,
}

/// The points in what it said.
fn points(text: &str) -> Vec<DataPoint> {
    let (mut points, mut next): (Vec<DataPoint>, _) = (Vec::new(), DataPoint::default());
    for line in text.lines().map(str::trim) {
        let word = |of: &str| line.strip_prefix(of).map(str::trim);
        if let Some(name) = word("-> Name:") {
            next = DataPoint { metric: name.to_owned(), ..DataPoint::default() };
        } else if let Some(unit) = word("-> Unit:") {
            next.unit = unit.to_owned();
        } else if let Some(kind) = word("-> DataType:") {
            next.kind = kind.to_owned();
        } else if let Some(temporality) = word("-> AggregationTemporality:") {
            next.temporality = temporality.to_owned();
        } else if line == "Data point attributes:" {
            next.labels.clear();
        } else if let Some((name, value)) = word("->").and_then(|rest| rest.split_once(": Str(")) {
            next.labels.insert(name.to_owned(), value.trim_end_matches(')').to_owned());
        } else if let Some(value) = word("Value:").or_else(|| word("Count:")) {
            points.push(DataPoint { value: value.parse().unwrap_or(f64::NAN), ..next.clone() });
        } else if let (Some(bucket), Some(point)) = (word("Bucket"), points.last_mut()) {
            // Bucket (0.001, 0.002], Count: 7
            let parts = bucket.split_once(", Count: ").and_then(|(bounds, count)| {
                let (_, above) = bounds.split_once(", ")?;
                Some((above.trim_end_matches([']', ')']).parse().ok()?, count.parse().ok()?))
            });
            point.buckets.extend(parts);
        }
    }
    points
}

fn reads(temporality: &'static str) -> Verdict {
    let folder = tempfile::tempdir()?;
    let (_running, port) = collector(folder.path())?;
    let out = format!("otlp=http://127.0.0.1:{port}?temporality={temporality}");
    let sent = run(folder.path(), &[&out])?;
    sent.all_arrived()?;
    let points = points(&fs::read_to_string(folder.path().join("said"))?);
    let is_delta = temporality == "delta";
    let of = |metric: &str| -> Vec<&DataPoint> {
        points.iter().filter(|point| point.metric == metric).collect()
    };
    let expect = |what: &str, got: f64, wanted: Option<f64>, (wider, off): (f64, f64)| {
        let wanted = wanted.ok_or_else(|| format!("the record has no {what}"))?;
        match (got - wanted).abs() <= wider * wanted.abs() + off {
            true => Ok(()),
            false => Err(Failed::from(format!("{what} is {got}, the record has {wanted}"))),
        }
    };
    for count in ["published", "received", "connects"] {
        let found = of(&format!("mqtt_load_{count}"));
        let wrong = found
            .iter()
            .find(|one| one.kind != "Sum" || !one.temporality.eq_ignore_ascii_case(temporality));
        if let Some(wrong) = wrong {
            return Err(format!("{wrong:?}").into());
        }
        // Sums of each second, or the last ones of each series.
        let mut series: BTreeMap<_, f64> = BTreeMap::new();
        for point in found {
            let value = series.entry(&point.labels).or_default();
            *value = point.value + if is_delta { *value } else { 0.0 };
        }
        expect(count, series.values().sum(), Some(sent.counted(count)), (0.0, 0.0))?;
    }
    let step = &sent.record["steps"][0];
    for (latency, stats) in [
        ("e2e_latency", &step["latency_us"]),
        ("service_latency", &step["service_us"]),
        ("ack_latency", &step["ack_us"]),
    ] {
        let found = of(&format!("mqtt_load_{latency}"));
        let measured = found.iter().filter(|one| one.labels["measured"] == "true");
        let mut buckets: BTreeMap<u64, u64> = BTreeMap::new();
        for point in measured {
            if point.kind != "ExponentialHistogram" || point.unit != "s" {
                return Err(format!("{point:?}").into());
            }
            if !is_delta {
                buckets.clear();
            }
            // Bounds are positive: their order is that of their bits.
            for (above, count) in &point.buckets {
                *buckets.entry(above.to_bits()).or_default() += count;
            }
        }
        let count: u64 = buckets.values().sum();
        expect(
            &format!("the count of {latency}"),
            count as f64,
            stats["count"].as_f64(),
            (0.0, 0.0),
        )?;
        for (quantile, name) in [(0.5, "p50"), (0.9, "p90"), (0.99, "p99")] {
            let wanted = stats[name].as_f64().map(|us| us / 1e6);
            let rank = (quantile * count as f64).ceil() as u64;
            let mut before = 0;
            let bound = buckets.iter().find(|(_, count)| {
                before += **count;
                before >= rank
            });
            let got = bound.map_or(f64::NAN, |(above, _)| f64::from_bits(*above));
            expect(&format!("{name} of {latency}"), got, wanted, (BUCKET_WIDTH, SHOWN_S))?;
            let gauges = of(&format!("mqtt_load_step_{latency}_{name}"));
            let [gauge] = gauges[..] else { return Err(format!("{name}: {gauges:?}").into()) };
            if (gauge.kind.as_str(), gauge.unit.as_str()) != ("Gauge", "s") {
                return Err(format!("{gauge:?}").into());
            }
            expect(&gauge.metric, gauge.value, wanted, (0.0, SHOWN_S))?;
        }
    }
    Ok(())
}
