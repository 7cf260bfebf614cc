//! The steps of a ladder: which variable takes which values.

use std::fmt;

/// Steps that one ladder has at most.
const STEPS_MAX: usize = 1000;

/// `target_throughput=5000..30000:5000`, `payload_size=128,1024,8192`.
#[derive(Clone, Debug, PartialEq)]
pub struct StepSpec {
    /// The variable.
    pub variable: String,
    /// Its values, as `--var` takes them, in order.
    pub values: Vec<String>,
}

impl StepSpec {
    /// Parses `VARIABLE=VALUES`. Values are a list (`128,1024,8192`), a range with a step
    /// (`5000..30000:5000`) or a range with a factor (`128..8192*2`). A range ends with its last
    /// value even where the step would miss it.
    ///
    /// # Errors
    /// A sentence, when that is not what it says.
    pub fn parse(text: &str) -> Result<Self, String> {
        let example = "write for example target_throughput=5000..30000:5000, \
                       publishers=100..1600*2 or payload_size=128,1024,8192";
        let (variable, values) =
            text.split_once('=').ok_or_else(|| format!("'{text}' has no '=': {example}"))?;
        let variable = variable.trim();
        if variable.is_empty() {
            return Err(format!("'{text}' names no variable: {example}"));
        }
        let values = match values.split_once("..") {
            Some((from, rest)) => range(from, rest, example)?,
            None => values.split(',').map(|value| value.trim().to_owned()).collect(),
        };
        if values.iter().any(String::is_empty) {
            return Err(format!("'{text}' has an empty value: {example}"));
        }
        if values.len() > STEPS_MAX {
            return Err(format!("'{text}' is more than {STEPS_MAX} steps"));
        }
        Ok(Self { variable: variable.to_owned(), values })
    }
}

impl fmt::Display for StepSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.variable, self.values.join(","))
    }
}

fn range(from: &str, rest: &str, example: &str) -> Result<Vec<String>, String> {
    let complain = |what: &str| format!("{what}: {example}");
    let (to, by, times) = if let Some((to, step)) = rest.split_once([':', '+']) {
        (to, step, false)
    } else if let Some((to, factor)) = rest.split_once('*') {
        (to, factor, true)
    } else {
        return Err(complain("a range needs a step after ':' or a factor after '*'"));
    };
    let number_of = |text: &str| {
        number(text).ok_or_else(|| complain(&format!("'{}' is not a number", text.trim())))
    };
    let (from, to, by) = (number_of(from)?, number_of(to)?, number_of(by)?);
    let climbs = if times { by > 1.0 && from > 0.0 } else { by > 0.0 };
    if !climbs || to < from {
        return Err(complain("a range must ascend, by a step above 0 or a factor above 1"));
    }
    let mut values = Vec::new();
    let mut value = from;
    // A tiny slack, so that rounding does not lose the last step.
    while value < to * (1.0 - 1e-9) {
        values.push(shown(value));
        if values.len() > STEPS_MAX {
            return Err(format!("that is more than {STEPS_MAX} steps"));
        }
        value = if times { value * by } else { from + by * values.len() as f64 };
    }
    values.push(shown(to));
    Ok(values)
}

/// A number as variables take it: `10000`, `10k`, `1.5M`, `10_000`.
pub fn number(text: &str) -> Option<f64> {
    let plain = text.trim().replace('_', "");
    let (digits, factor) = match plain.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1e3),
        None => match plain.strip_suffix('M') {
            Some(digits) => (digits, 1e6),
            None => (plain.as_str(), 1.0),
        },
    };
    digits.parse::<f64>().ok().map(|value| value * factor).filter(|value| value.is_finite())
}

/// A number as `--var` takes it: whole where it can be, else with six digits.
pub fn shown(value: f64) -> String {
    let rounded = value.round();
    if (value - rounded).abs() < 1e-6 || value >= 1e6 {
        return format!("{rounded}");
    }
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The unit of a variable's values, by the names in built-in scenarios.
pub fn unit_of(variable: &str) -> &'static str {
    match variable {
        "target_throughput" => "msg/s in",
        "payload_size" => "bytes",
        "publishers" | "subscribers" | "clients" | "connections" => "clients",
        _ => "",
    }
}

/// Whether a variable is a publish rate, which `--scale` multiplies.
pub fn is_rate(variable: &str) -> bool {
    unit_of(variable).starts_with("msg/s")
}

/// A label with the factor that its rates were multiplied by.
pub fn scaled_label(label: &str, scale: f64) -> String {
    if scale == 1.0 { label.to_owned() } else { format!("{label} x{scale}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<String> {
        StepSpec::parse(text).expect(text).values
    }

    #[test]
    fn lists_and_ranges() {
        assert_eq!(values("payload_size=128, 1024,8k"), ["128", "1024", "8k"]);
        assert_eq!(values("qos=0,1,2"), ["0", "1", "2"]);
        assert_eq!(values("target_throughput=5k..20k:5k"), ["5000", "10000", "15000", "20000"]);
        assert_eq!(values("x=5000..20000+5000").len(), 4);
        assert_eq!(values("x=128..8192*2"), ["128", "256", "512", "1024", "2048", "4096", "8192"]);
        // The end is a step of its own.
        assert_eq!(values("x=10..25:10"), ["10", "20", "25"]);
        assert_eq!(values("x=0.1..0.3:0.1"), ["0.1", "0.2", "0.3"]);
        assert_eq!(values("x=7..7:1"), ["7"]);
    }

    #[test]
    fn complains_in_sentences() {
        for (text, words) in [
            ("payload_size", "no '='"),
            ("=1,2", "names no variable"),
            ("x=1..10", "needs a step"),
            ("x=10..1:1", "must ascend"),
            ("x=1..10:0", "must ascend"),
            ("x=0..10*2", "must ascend"),
            ("x=1..10*1", "must ascend"),
            ("x=a..10:1", "'a' is not a number"),
            ("x=1,,2", "empty value"),
            ("x=1..1e9:1", "more than 1000 steps"),
        ] {
            let error = StepSpec::parse(text).expect_err(text);
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn numbers_print_as_variables_take_them() {
        assert_eq!(
            (shown(10_000.0), shown(0.25), shown(1e9)),
            ("10000".into(), "0.25".into(), "1000000000".into())
        );
        assert_eq!(
            (number("1.2k"), number("10_000"), number("x")),
            (Some(1200.0), Some(1e4), None)
        );
    }
}
