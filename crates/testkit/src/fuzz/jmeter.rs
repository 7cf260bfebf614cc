//! A JMeter plan with any content: it is translated, or the message says what is wrong.

use tacho_scenario::{Adjustment, JmxOptions, Limits, Scenario, SourceText, jmx};

/// The input is the text of the plan.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let plan = SourceText::new("fuzzed.jmx", text);
    for ignore_unknown in [false, true] {
        let options = JmxOptions { ignore_unknown, ..Adjustment::NONE.jmx };
        let adjustment = Adjustment { jmx: options, ..Adjustment::NONE };
        match jmx::translate(&plan, &[], &adjustment) {
            Ok(translation) => {
                // What makes no sense as a load is refused there.
                if let Err(error) = Scenario::parse(&translation.source, &[], Limits::NONE) {
                    assert!(!error.to_string().trim().is_empty());
                }
            }
            Err(error) => assert!(!error.to_string().trim().is_empty()),
        }
    }
}
