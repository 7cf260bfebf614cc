//! Numbers of a plan and the units that they come in.

/// The rate per minute that `__xmeterThroughput` makes of a number and a unit.
pub(super) fn per_minute(value: &str, unit: &str) -> Result<f64, String> {
    let number: f64 = value.parse().map_err(|_| format!("'{value}' is not a rate"))?;
    match unit {
        "SEC" => Ok(number * 60.0),
        "" | "MIN" => Ok(number),
        "HOUR" => Ok(number / 60.0),
        other => Err(format!("__xmeterThroughput knows SEC, MIN and HOUR, not '{other}'")),
    }
}

/// A number without a needless fraction.
pub(super) fn number_text(value: f64) -> String {
    match value.fract() == 0.0 && value.abs() < 9e15 {
        true => format!("{}", value as i64),
        false => value.to_string(),
    }
}
