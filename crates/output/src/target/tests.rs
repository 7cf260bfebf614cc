//! Targets as they are written.

use std::fs;

use super::*;

fn target(text: &str) -> OutputTarget {
    OutputTarget::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn error(text: &str) -> String {
    match OutputTarget::parse(text) {
        Ok(target) => panic!("{text} is {target:?}"),
        Err(error) => error.to_string(),
    }
}

fn http_of(text: &str) -> HttpTarget {
    match target(text).kind {
        TargetKind::Influx { http, .. }
        | TargetKind::Prometheus { http, .. }
        | TargetKind::Otlp { http, .. } => http,
        kind => panic!("{kind:?} has no URL"),
    }
}

#[test]
fn addresses_lead_to_the_write_endpoint_of_each_service() {
    for (text, url) in [
        ("influxdb=http://h:8086/my db", None),
        ("influxdb=http://h:8086/tacho", Some("http://h:8086/write?db=tacho&precision=ms")),
        (
            "influxdb=http://h:8086/tacho?rp=one week",
            Some("http://h:8086/write?db=tacho&rp=one%20week&precision=ms"),
        ),
        (
            "influxdb=https://h/behind/proxy?db=a%26b",
            Some("https://h/behind/proxy/write?db=a%26b&precision=ms"),
        ),
        (
            "influxdb=http://[::1]:8086?org=my org&bucket=b/autogen",
            Some("http://[::1]:8086/api/v2/write?org=my%20org&bucket=b%2Fautogen&precision=ms"),
        ),
        ("prometheus=http://h:9090", Some("http://h:9090/api/v1/write")),
        ("prometheus=http://h/api/v1/push", Some("http://h/api/v1/push")),
        ("otlp=http://h:4318/", Some("http://h:4318/v1/metrics")),
        ("otlp=https://h/otlp/v1/metrics", Some("https://h/otlp/v1/metrics")),
    ] {
        match url {
            Some(url) => assert_eq!(http_of(text).url, url),
            None => assert!(error(text).contains("it is no URL"), "{}", error(text)),
        }
    }
}

#[test]
fn options_have_defaults_and_bounds() {
    let plain = target("influxdb=http://h/d");
    assert_eq!((plain.every, plain.ends_run), (Duration::from_secs(1), false));
    assert_eq!(
        (http_of("influxdb=http://h/d").gzip, http_of("prometheus=http://h").gzip),
        (true, false)
    );
    let set = target(
        "influxdb=http://h/d?every=5s&on-failure=end&gzip=off&schema=jmeter&application=a b",
    );
    assert_eq!((set.every, set.ends_run), (Duration::from_secs(5), true));
    let application = Some("a b".to_owned());
    let TargetKind::Influx { http, schema } = set.kind else { panic!("not InfluxDB") };
    assert_eq!((http.gzip, schema), (false, InfluxSchema::JMeter { application }));
    let delta = target("otlp=http://h?temporality=delta&timeout=500ms");
    let TargetKind::Otlp { http, temporality } = delta.kind else { panic!("not OTLP") };
    assert_eq!((http.timeout, temporality), (Duration::from_millis(500), Temporality::Delta));
    let off = target("prometheus=http://h?histograms=off").kind;
    assert!(matches!(off, TargetKind::Prometheus { histograms: false, .. }));
    assert_eq!(target("json=a b.jsonl").kind, TargetKind::Json("a b.jsonl".into()));
    assert_eq!(target("csv=a=b.csv").kind, TargetKind::Csv("a=b.csv".into()));
}

#[test]
fn what_is_wrong_is_named() {
    for (text, said) in [
        ("influxdb", "has no '='"),
        ("influx=http://h/d", "there is no output 'influx'"),
        ("json=", "json= needs the name of a file"),
        ("influxdb=h:8086/d", "does not begin with http://"),
        ("influxdb=http://h:8086", "the database is missing"),
        ("influxdb=http://h?org=o", "the bucket is missing"),
        ("influxdb=http://h/d?bucket=b&rp=r", "a bucket, or a database"),
        ("influxdb=http://me:secret@h/d", "a password in the address is visible"),
        ("influxdb=http://h/d?application=a", "only schema=jmeter"),
        ("influxdb=http://h/d?schema=telegraf", "write tacho, jmeter or collectd"),
        ("prometheus=http://h?gzip=on", "there is no option 'gzip'; the options are every, "),
        ("prometheus=http://h?every=1s&every=2s", "'every' is there twice"),
        ("otlp=http://h?every=100ms", "every=100ms is not possible: write a time from 1s to 60s"),
        ("otlp=http://h?every=5", "every=5 is not possible"),
        ("otlp=http://h?temporality=both", "write cumulative or delta"),
        ("json=x?timeout=1s", "there is no option 'timeout'; the options are every, on-failure"),
        ("otlp=http://h?user=me&token-file=t", "a token or a user, not both"),
        ("otlp=http://h?password-file=p", "the user of the password is missing"),
    ] {
        let error = error(text);
        assert!(error.contains(said), "{text}: {error}");
    }
}

#[test]
fn secrets_on_the_command_line_are_refused_and_not_repeated() {
    for text in [
        "influxdb=http://h/d?token=sesame",
        "otlp=http://h?Password=sesame",
        "influxdb=http://h/d?p=sesame",
    ] {
        let error = error(text);
        assert!(error.contains("TACHO_OUT_") && error.contains("-file="), "{error}");
        assert!(!error.contains("sesame"), "{error}");
    }
}

#[test]
fn secrets_come_from_files_or_the_environment_and_are_never_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("writes");
        path.display().to_string()
    };
    let (token, headers) =
        (file("token", "sesame\n"), file("headers", "Api-Key: sesame\n\nX: y\n"));
    let with = |text: &str, variables: &[(&str, &str)]| {
        let access = http_of(text).access;
        let variables: Vec<(String, String)> = variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let found = access.headers(|name| {
            variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
        });
        found.map(|headers| {
            assert!(!format!("{headers:?}{access:?}").contains("sesame"), "{headers:?}");
            let text = |value: &ureq::http::HeaderValue| value.to_str().expect("text").to_owned();
            headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect::<Vec<_>>()
        })
    };
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let influx = format!("influxdb=http://h/d?token-file={token}");
    let got = with(&influx, &[]).expect("reads");
    assert_eq!(got, [pair("authorization", "Token sesame")]);
    let got = with("otlp=http://h", &[("TACHO_OUT_OTLP_TOKEN", " sesame ")]).expect("reads");
    assert_eq!(got, [pair("authorization", "Bearer sesame")]);
    let variables = [("TACHO_OUT_INFLUXDB_PASSWORD", "sesame"), ("TACHO_OUT_OTLP_TOKEN", "other")];
    let got = with("influxdb=http://h/d?user=me", &variables).expect("reads");
    assert_eq!(got, [pair("authorization", "Basic bWU6c2VzYW1l")]);
    let got = with(&format!("prometheus=http://h?headers-file={headers}"), &[]).expect("reads");
    assert_eq!(got, [pair("api-key", "sesame"), pair("x", "y")]);
    let error = with("influxdb=http://h/d?user=me", &[]).expect_err("no password");
    assert!(error.to_string().contains("TACHO_OUT_INFLUXDB_PASSWORD"), "{error}");
    let error = with("otlp=http://h?token-file=/nowhere", &[]).expect_err("no file");
    assert!(error.to_string().contains("/nowhere"), "{error}");
    let bad = file("bad", "sesame");
    let error = with(&format!("otlp=http://h?headers-file={bad}"), &[]).expect_err("no header");
    assert!(error.to_string().contains("line 1") && !error.to_string().contains("sesame"));
    // What is shown and recorded has no options.
    assert_eq!(target(&influx).to_string(), "influxdb=http://h/d");
}

#[test]
fn lists_of_targets_come_from_a_variable_or_a_file() {
    let all = OutputTarget::parse_all(" json=a\n csv=b ").expect("two");
    assert_eq!(all.iter().map(ToString::to_string).collect::<Vec<_>>(), ["json=a", "csv=b"]);
    assert!(OutputTarget::parse_all("  ").expect("none").is_empty());
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("outputs");
    fs::write(&path, "# where to\njson=a b\n\n  csv=c\n").expect("writes");
    let argument = format!("@{}", path.display());
    let all = OutputTarget::parse_argument(&argument).expect("two");
    assert_eq!(all.iter().map(ToString::to_string).collect::<Vec<_>>(), ["json=a b", "csv=c"]);
    fs::write(&path, "json=a\nsomething\n").expect("writes");
    let error = OutputTarget::parse_argument(&argument).expect_err("is wrong").to_string();
    assert!(error.contains("line 2: 'something' has no '='"), "{error}");
}
