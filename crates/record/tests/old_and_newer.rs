//! Records of other versions of the schema.

use std::fs;
use std::path::Path;

use tacho_record::{ReadError, SCHEMA_VERSION, read_comparison, read_record};

#[test]
fn a_record_of_version_1_is_read() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/version1");
    let record = read_record(&path).expect("reads").expect("is there");
    assert_eq!((record.schema_version, record.steps.len()), (1, 1));
    assert!(record.causes.is_empty() && record.remarks.is_empty());
    assert!(record.notes[0].starts_with("One-machine run"), "{}", record.notes[0]);
}

#[test]
fn records_of_a_newer_version_are_refused() {
    let place = tempfile::tempdir().expect("temporary directory");
    let newer = format!("{{\"schema_version\": {}}}", SCHEMA_VERSION + 1);
    fs::write(place.path().join("comparison.json"), newer).expect("writes");
    let error = read_comparison(place.path()).expect_err("is newer");
    assert!(matches!(error, ReadError::Newer { .. }), "{error}");
    assert!(error.to_string().contains("written by a later version"), "{error}");
}
