//! Whole pages, from records that have everything.

mod comparison;
mod fitting;
mod grouping;
mod host_samples;
mod label_samples;
mod languages;
mod row_seconds;
mod samples;
mod statements;

use samples::{Sample, capacity, single, suite};

use super::{Lang, ReportData, html, with_files};
use tacho_record::{
    DataDisk, Finding, HostDescription, NetworkLimit, Severity, Skipped, TargetRecord,
};
use tacho_scenario::VarValue;

fn page(sample: &Sample) -> String {
    page_in(Lang::En, sample)
}

fn page_in(lang: Lang, sample: &Sample) -> String {
    let page = html(&ReportData {
        record: &sample.record,
        rows: &sample.rows,
        curves: &sample.curves,
        hosts: &sample.hosts,
        brokers: &sample.brokers,
        environment: &sample.environment,
        lang,
    });
    let files = ["summary.json", "timeseries.csv", "latency.hlog", "report.html"];
    with_files(&page, &files.map(str::to_owned))
}

/// The page without its own script and style sheet.
fn content(page: &str) -> String {
    let mut rest = page;
    let mut content = String::new();
    for (start, end) in [("<style>", "</style>"), ("<script>", "</script>")] {
        let (before, after) = rest.split_once(start).expect("has it once");
        content.push_str(before);
        rest = after.split_once(end).expect("is closed").1;
    }
    content + rest
}

/// Keeps the pages for inspection: `TACHO_REPORT_SAMPLES=dir cargo test`.
fn keep(name: &str, page: &str) {
    if let Some(folder) = std::env::var_os("TACHO_REPORT_SAMPLES") {
        let path = std::path::Path::new(&folder).join(name);
        std::fs::write(path, page).expect("writes the sample");
    }
}

#[test]
fn a_single_run_shows_everything_that_it_has() {
    let page = page(&single(60));
    keep("single.html", &page);
    for words in [
        "QoS contract broken",
        "Messages per second",
        "99th percentile of latency",
        "Greatest latency",
        "Latency by percentile",
        "Response time: connect",
        "Response time: subscribe",
        "Overall throughput",
        "Throughput, failed",
        "Virtual users",
        "Bytes of all clients",
        "Round trip to the broker",
        "Host broker-1, broker node1</h2>",
        "CPU of brokers and generator",
        "Broker node1",
        "Broker node2",
        "from bridges of others",
        "Messages that wait in its bridges",
        "no more than before after",
        "2.35 s",
        "CPU usage",
        "Memory usage",
        "Network usage",
        "CPU load",
        "Disk traffic",
        "nvme0n1 written",
        "Time of a disk operation",
        "Disk space",
        "Network trouble",
        "Shared subscriptions",
        "Losses that the scenario declares",
        "Lost messages by sequence number",
        "from pub_7 to sub_7",
        "does not hold",
        "tacho run symmetric --var qos=1 --broker-cmd &#39;broker -p {port}&#39;",
        "href=\"timeseries.csv\"",
        "2.3 % of the CPU time",
        "99.9 %",
    ] {
        assert!(page.contains(words), "{words}");
    }
    assert!(!page.contains("broker.log"), "a file that is not there is linked");
    // Each chart is drawn for paper.
    let figures = page.matches("<figure").count();
    assert!(figures > 25 && page.matches("<svg").count() == figures, "{figures}");
}

#[test]
fn a_suite_overlays_its_series_and_what_is_published() {
    let page = page(&suite());
    keep("suite.html", &page);
    for words in [
        "Latency: QoS",
        "CPU: QoS",
        "QoS 1 avg",
        "QoS 2 p99",
        "75 %",
        "50.4K",
        "payload size (bytes)",
        "Show published results: EMQX guide: EMQX 5.1.6, one node, 4 vCPU Xeon Platinum 8378A",
        "BifroMQ standalone, 32 cores",
        "href=\"steps/symmetric-qos1-04/report.html\"",
        "Steps that do not count",
        "Graphs of the rows",
        "<details class=\"row-graphs\"><summary>1k_<wbr>1k_<wbr>qos0",
        "Greatest latency",
        "busiest generator thread",
        "needs 200100 descriptors",
        "resident memory",
        "class=\"invalid\"",
        "class=\"hollow",
    ] {
        assert!(page.contains(words), "{words}");
    }
}

#[test]
fn a_capacity_is_an_interval() {
    let page = page(&capacity());
    keep("capacity.html", &page);
    for words in [
        "Trials of the search",
        "The highest target throughput that met cpu&lt;=75%, loss==0 is 24,000 msg/s",
        "it failed at 26,000 msg/s",
        "Confirmed 2 of 2 times",
        "lowest that failed",
        "generator-bound",
    ] {
        assert!(page.contains(words), "{words}");
    }
}

#[test]
fn the_broker_host_is_described_in_both_languages() {
    let mut sample = single(20);
    let (same, other) = ("net.core.somaxconn", "vm.swappiness");
    sample.environment.sysctl =
        [same, other].map(|name| (name.to_owned(), Some("4711".to_owned()))).into();
    sample.record.targets[0].host = Some(HostDescription {
        host: "broker-1".to_owned(),
        instance: Some("Amazon EC2 m5.large".to_owned()),
        cores: Some(2),
        data_disk: Some(DataDisk {
            file_system: "xfs".to_owned(),
            mount_point: "/data".to_owned(),
            device: "/dev/nvme0n1".to_owned(),
            rotational: Some(false),
            ..DataDisk::default()
        }),
        settings: [(same, "4711"), (other, "4712")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        ..HostDescription::default()
    });
    sample.record.targets[0].network_limit = NetworkLimit::parse("8Gbit/s,800kpps").ok();
    let page = page(&sample);
    for words in [
        "Host of the broker",
        "broker-1",
        "Amazon EC2 m5.large",
        "xfs on /dev/nvme0n1, mounted at /data, not rotating",
        "8000 Mbit/s, 800,000 packets/s",
        // A setting that this machine has otherwise; equal ones are not repeated.
        "4712",
    ] {
        assert!(page.contains(words), "{words}");
    }
    assert_eq!(page.matches("4711").count(), 2);
    let page = page_in(Lang::Zh, &sample);
    for words in ["Broker 所在主机", "实例类型", "xfs，设备 /dev/nvme0n1", "每秒 800,000 个数据包"]
    {
        assert!(page.contains(words), "{words}");
    }
    sample.record.targets.clear();
    assert!(!page_in(Lang::En, &sample).contains("Host of the broker"));
}

#[test]
fn nothing_is_loaded_from_anywhere() {
    for sample in [single(60), suite(), capacity()] {
        let page = page(&sample);
        for outside in ["http:", "https:", "@import", "url(", "<link", "<img", "<iframe", " src="] {
            assert!(!page.contains(outside), "{outside}");
        }
    }
}

#[test]
fn hostile_names_stay_text() {
    let evil = "</script><script>alert(1)</script><b onclick='x'>\"&";
    let mut sample = single(20);
    let record = &mut sample.record;
    for text in [&mut record.scenario, &mut record.name, &mut record.description] {
        evil.clone_into(text);
    }
    record.reasons = vec![evil.to_owned()];
    record.notes = vec![evil.to_owned()];
    record.first_failures = vec![evil.to_owned()];
    record.vars.insert(evil.to_owned(), VarValue::Text(evil.to_owned()));
    record.target.broker = evil.to_owned();
    record.targets = vec![TargetRecord { name: evil.to_owned(), ..record.target.clone() }; 2];
    record.targets[0].host = Some(HostDescription {
        host: evil.to_owned(),
        instance: Some(evil.to_owned()),
        data_disk: Some(DataDisk { device: evil.to_owned(), ..DataDisk::default() }),
        settings: [(evil.to_owned(), evil.to_owned())].into(),
        ..HostDescription::default()
    });
    record.tool_version = evil.to_owned();
    let severity = Severity::Error;
    let (code, sentence) = (evil.to_owned(), evil.to_owned());
    record.findings = vec![Finding {
        code,
        severity,
        sentence,
        step: Some(0),
        observation: None,
        place: String::new(),
    }];
    let step = &mut record.steps[0];
    evil.clone_into(&mut step.label);
    step.lost_ranges[0].publisher = evil.to_owned();
    step.shared[0].filter = evil.to_owned();
    step.targets[0].name = evil.to_owned();
    step.gates[0].name = evil.to_owned().into();
    step.gates[0].unit = evil.to_owned();
    for row in &mut sample.hosts {
        evil.clone_into(&mut row.host.host);
        evil.clone_into(&mut row.host.interfaces[0].name);
        evil.clone_into(&mut row.host.disks[0].name);
        evil.clone_into(&mut row.host.file_systems[0].mount_point);
    }
    sample.environment.command_line = vec![evil.to_owned()];
    check_hostile(&page(&sample));

    let mut sample = suite();
    for series in &mut sample.record.series {
        for text in [&mut series.label, &mut series.figure, &mut series.unit] {
            evil.clone_into(text);
        }
        series.variable = series.variable.as_ref().map(|_| evil.to_owned());
    }
    for step in &mut sample.record.steps {
        step.label = format!("{evil}{}", step.tps);
        step.directory = "javascript:alert(1)".to_owned();
        step.whose_cpu = Some(evil.to_owned());
        step.vars.insert("qos".to_owned(), VarValue::Text(evil.to_owned()));
    }
    let (series, label, reason) = (evil.to_owned(), evil.to_owned(), evil.to_owned());
    sample.record.skipped = vec![Skipped { series, label, reason, obstacle: None }];
    check_hostile(&page(&sample));
}

fn check_hostile(page: &str) {
    assert_eq!(page.matches("<script").count(), 2, "one for the data, one for the script");
    assert_eq!(page.matches("</script").count(), 2);
    let content = content(page);
    assert!(content.contains("&lt;/script&gt;"));
    for broken in ["<b onclick", "alert(1)</script", "href=\"javascript"] {
        assert!(!content.contains(broken), "{broken}");
    }
}

#[test]
fn the_embedded_data_is_json() {
    let page = page(&single(60));
    let (_, rest) = page.split_once("id=\"chart-data\">").expect("is there");
    let (json, _) = rest.split_once("</script>").expect("ends");
    let data: serde_json::Value = serde_json::from_str(json).expect("is JSON");
    let charts = data["charts"].as_array().expect("a list");
    assert_eq!(charts.len(), page.matches("data-chart=").count());
    let places = data["places"].as_array().expect("a list");
    for line in charts.iter().flat_map(|chart| chart["lines"].as_array().expect("a list")) {
        let at = line["places"].as_u64().expect("a number") as usize;
        let values = line["values"].as_array().expect("a list");
        assert_eq!(values.len(), places[at].as_array().expect("a list").len());
    }
    // The seconds of the run are there once, not once per line.
    assert!(places.len() < 12, "{}", places.len());
}

#[test]
fn a_long_run_is_thinned_and_says_so() {
    let page = page(&single(6 * 3600));
    keep("long.html", &page);
    assert!(page.len() < 4 << 20, "{} bytes", page.len());
    assert!(page.contains("least and greatest value of every 36 points"), "says so");
}

#[test]
fn a_run_that_measured_nothing_has_a_page() {
    let mut sample = single(2);
    sample.rows.clear();
    sample.hosts.clear();
    sample.curves.clear();
    sample.record.steps.clear();
    sample.record.findings.clear();
    let page = page(&sample);
    assert!(page.contains("QoS contract broken") && page.contains("How to reproduce"));
    let mut sample = suite();
    sample.record.steps.clear();
    sample.curves.clear();
    for series in &mut sample.record.series {
        series.steps.clear();
    }
    assert!(self::page(&sample).contains("Skipped"));
}
