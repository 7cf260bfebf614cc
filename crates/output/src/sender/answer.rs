//! What the answer of a service means.

use std::time::Duration;

use crate::encode::refused_data_points;

/// Characters of an answer that are quoted.
const QUOTED_CHARS: usize = 200;

/// The services that are spoken to over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Service {
    Influx,
    Prometheus,
    Otlp,
}

/// What became of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Uptake {
    /// It was taken, except for some records.
    Taken { refused: u64, why: Option<String> },
    /// It may be taken later.
    Later { why: String, after: Option<Duration> },
    /// It will never be taken.
    Refused { why: String },
}

/// An answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct HttpAnswer<'a> {
    pub(super) status: u16,
    /// The header `Retry-After`.
    pub(super) retry_after: Option<&'a str>,
    pub(super) body: &'a [u8],
}

impl Service {
    /// Judges an answer to a body of that many `records`.
    ///
    /// InfluxDB: docs.influxdata.com/influxdb/v1/tools/api and v2/api/write; remote write: the
    /// section "Retries & Backoff" of its specification; OTLP: "Failures" in its specification.
    pub(super) fn judge(self, answer: HttpAnswer<'_>, records: u64) -> Uptake {
        let said = quoted(answer.body);
        let why = match said.as_str() {
            "" => format!("it answered {}", answer.status),
            said => format!("it answered {}: {said}", answer.status),
        };
        let after = answer.retry_after.and_then(|text| text.trim().parse().ok());
        let later = |why| Uptake::Later { why, after: after.map(Duration::from_secs) };
        match (self, answer.status) {
            (Self::Otlp, 200..=299) => {
                let (refused, message) = refused_data_points(answer.body);
                let why = (refused > 0).then(|| format!("it refused {refused}: {message}"));
                Uptake::Taken { refused: refused.min(records), why }
            }
            (_, 200..=299) => Uptake::Taken { refused: 0, why: None },
            // The rest of the batch is stored.
            (Self::Influx, 400) => match dropped(&said) {
                Some(dropped) if dropped <= records => {
                    Uptake::Taken { refused: dropped, why: Some(why) }
                }
                _ => Uptake::Refused { why },
            },
            (Self::Prometheus, 500..=599) if said.contains("native histograms are disabled") => {
                let remedy = "start it with --enable-feature=native-histograms, or add \
                              histograms=off";
                Uptake::Refused { why: format!("{why}; {remedy}") }
            }
            (Self::Otlp, 429 | 502 | 503 | 504) => later(why),
            (Self::Influx | Self::Prometheus, 429 | 500..=599) => later(why),
            _ => Uptake::Refused { why },
        }
    }
}

/// How many points a partial write dropped: `partial write: ... dropped=3`.
fn dropped(said: &str) -> Option<u64> {
    if !said.contains("partial write") {
        return None;
    }
    let (_, rest) = said.split_once("dropped=")?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// The beginning of an answer on one line, for people.
fn quoted(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let printable = words.chars().map(|c| if c.is_control() { '?' } else { c });
    match words.chars().count() > QUOTED_CHARS {
        true => printable.take(QUOTED_CHARS).chain(['.', '.', '.']).collect(),
        false => printable.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(service: Service, status: u16, body: &str) -> Uptake {
        service.judge(HttpAnswer { status, retry_after: Some("7"), body: body.as_bytes() }, 10)
    }

    #[test]
    fn only_what_may_pass_is_tried_again() {
        use Service::{Influx, Otlp, Prometheus};
        for (service, status, again) in [
            (Influx, 429, true),
            (Influx, 503, true),
            (Influx, 500, true),
            (Influx, 400, false),
            (Influx, 401, false),
            (Influx, 404, false),
            (Influx, 413, false),
            (Influx, 301, false),
            (Prometheus, 429, true),
            (Prometheus, 500, true),
            (Prometheus, 400, false),
            (Otlp, 429, true),
            (Otlp, 502, true),
            (Otlp, 503, true),
            (Otlp, 504, true),
            (Otlp, 500, false),
            (Otlp, 413, false),
        ] {
            match judge(service, status, "no") {
                Uptake::Later { why, after } => {
                    assert!(again, "{service:?} {status}");
                    assert_eq!(after, Some(Duration::from_secs(7)));
                    assert!(why.contains(&status.to_string()) && why.ends_with("no"), "{why}");
                }
                Uptake::Refused { .. } => assert!(!again, "{service:?} {status}"),
                taken => panic!("{service:?} {status}: {taken:?}"),
            }
        }
        for service in [Influx, Prometheus, Otlp] {
            assert_eq!(judge(service, 204, ""), Uptake::Taken { refused: 0, why: None });
        }
    }

    #[test]
    fn of_a_partial_write_the_dropped_points_are_refused() {
        let said = "{\"error\":\"partial write: points beyond retention policy dropped=3\"}";
        let Uptake::Taken { refused: 3, why: Some(why) } = judge(Service::Influx, 400, said) else {
            panic!("{:?}", judge(Service::Influx, 400, said))
        };
        assert!(why.contains("beyond retention policy"), "{why}");
        // A number that cannot be right is none.
        let said = "partial write: field type conflict dropped=99";
        assert!(matches!(judge(Service::Influx, 400, said), Uptake::Refused { .. }));
    }

    #[test]
    fn a_receiver_without_native_histograms_is_told_by_its_remedy() {
        let said = "native histograms are disabled";
        let Uptake::Refused { why } = judge(Service::Prometheus, 500, said) else {
            panic!("later")
        };
        assert!(why.contains("histograms=off"), "{why}");
    }

    #[test]
    fn answers_are_quoted_on_one_short_line() {
        let long = format!("a\n b\u{7}{}", "x".repeat(500));
        let Uptake::Refused { why } = judge(Service::Influx, 404, &long) else { panic!("later") };
        assert!(why.starts_with("it answered 404: a b?x") && why.ends_with("..."), "{why}");
        assert!(why.len() < 240, "{why}");
    }
}
