//! A configuration file with any content: what it says can be written down and read again.

use tacho_broker::RawConfig;

/// The input is the text of the file.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let raw: RawConfig = match toml::from_str(text) {
        Ok(raw) => raw,
        Err(error) => return assert!(!error.to_string().trim().is_empty()),
    };
    match raw.resolve() {
        Ok(config) => {
            let described = config.describe();
            let again: RawConfig = toml::from_str(&described).expect(&described);
            let again = again.resolve().expect(&described);
            assert_eq!(again.describe(), described);
        }
        Err(error) => assert!(!error.to_string().trim().is_empty()),
    }
}
