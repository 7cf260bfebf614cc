use super::*;
use crate::histogram::{Histogram, histogram};

#[derive(Serialize, serde::Deserialize)]
struct Carrier(#[serde(with = "crate::histogram::form")] Histogram);

#[test]
fn histograms_arrive_as_they_were_and_go_on_growing() {
    let mut sent = histogram();
    for value in [0, 1, 17, 1_000, 123_456, 60_000_000] {
        sent.record_n(value, value % 7 + 1).expect("resizes");
    }
    let bytes = encode(&Carrier(sent.clone())).expect("encodes");
    let Carrier(mut read) = decode(&bytes).expect("decodes");
    assert_eq!(read, sent);
    read.record(600_000_000_000).expect("a histogram that was received resizes, too");
    let Carrier(empty) = decode(&encode(&Carrier(histogram())).expect("encodes")).expect("decodes");
    assert_eq!(empty, histogram());
    assert!(decode::<Carrier>(&bytes[..bytes.len() - 1]).is_err());
}

#[test]
fn numbers_without_a_meaning_are_refused() {
    #[derive(Debug, serde::Deserialize)]
    #[expect(dead_code, reason = "only its decoding is tested")]
    struct Level(#[serde(with = "super::qos")] tacho_codec::QoS);
    assert!(decode::<Level>(&[2]).is_ok());
    assert!(decode::<Level>(&[3]).is_err());
}
