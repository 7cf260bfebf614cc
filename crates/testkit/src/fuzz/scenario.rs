//! A scenario file with any content: it is read, or the message says what is wrong.

use tacho_scenario::{Limits, Scenario, SourceText};

/// The input is the text of the file.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let source = SourceText::new("fuzzed.toml", text);
    match Scenario::parse(&source, &[], Limits::NONE) {
        Ok(scenario) => {
            scenario.schedule();
            let again = Scenario::parse(&source, &[], Limits::NONE).expect("as before");
            assert_eq!(scenario, again);
        }
        Err(error) => assert!(!error.to_string().trim().is_empty()),
    }
}
