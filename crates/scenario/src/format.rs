//! Figures as people read them, always with their unit.

/// `1,234,567`; `.` is the decimal point.
pub fn thousands(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A rate: whole from 100 on, one decimal below.
pub fn rate(value: f64) -> String {
    match value {
        value if !value.is_finite() => "unknown".to_owned(),
        value if value >= 99.95 => thousands(value.round() as u64),
        value => format!("{value:.1}"),
    }
}

/// A latency in microseconds, in the unit that suits it, three digits.
pub fn latency(us: f64) -> String {
    match us {
        us if us < 999.5 => format!("{us:.0} µs"),
        us if us < 999_500.0 => format!("{} ms", three_digits(us / 1e3)),
        us => format!("{} s", three_digits(us / 1e6)),
    }
}

/// A number with three digits, at most two of them decimals.
pub fn three_digits(value: f64) -> String {
    match value {
        value if value >= 99.95 => format!("{value:.0}"),
        value if value >= 9.995 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

/// A length of time in seconds; whole minutes from two on as such.
pub fn span(seconds: f64) -> String {
    match seconds {
        seconds if seconds >= 120.0 && seconds % 60.0 == 0.0 => {
            format!("{:.0} min", seconds / 60.0)
        }
        seconds if seconds >= 9.95 || seconds.fract() == 0.0 => format!("{seconds:.0} s"),
        seconds => format!("{seconds:.1} s"),
    }
}

/// A percentage with one decimal.
pub fn percent(value: f64) -> String {
    format!("{value:.1} %")
}

/// A percentage that may be unknown.
pub fn percent_or(value: Option<f64>) -> String {
    value.map_or_else(|| "not observed".to_owned(), percent)
}

/// Bytes in the binary unit that suits them.
pub fn bytes(value: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if value < 1024 {
        return format!("{value} B");
    }
    let mut scaled = value as f64 / 1024.0;
    let mut unit = 0;
    while scaled >= 1024.0 && unit + 1 < UNITS.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    format!("{scaled:.1} {}", UNITS[unit])
}

/// With a capital first letter.
pub fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures() {
        assert_eq!(thousands(0), "0");
        assert_eq!(thousands(999), "999");
        assert_eq!(thousands(1_234_567), "1,234,567");
        assert_eq!((rate(9999.96).as_str(), rate(0.25).as_str()), ("10,000", "0.2"));
        assert_eq!(latency(999.0), "999 µs");
        assert_eq!(latency(1234.0), "1.23 ms");
        assert_eq!(latency(12_345.0), "12.3 ms");
        assert_eq!(latency(999_999.0), "1.00 s");
        assert_eq!(percent(12.34), "12.3 %");
        assert_eq!((bytes(512).as_str(), bytes(1536).as_str()), ("512 B", "1.5 KiB"));
        assert_eq!(bytes(5_368_709_120), "5.0 GiB");
    }
}
