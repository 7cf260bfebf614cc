//! Timers: how they pace the samplers in their scope.

use super::expression::{JmeterPiece, JmeterText};
use super::number::{number_text, per_minute};
use super::values::Values;
use super::xml::Element;

/// A timer of a plan.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Timer {
    /// `ConstantThroughputTimer`.
    Throughput(Throughput),
    /// `ConstantTimer` and `UniformRandomTimer`: a pause, by its mean.
    Pause {
        /// Milliseconds.
        mean_ms: f64,
        /// It is drawn anew each time.
        random: bool,
    },
    /// `PreciseThroughputTimer`: random arrivals at a rate of the whole group.
    Arrivals {
        /// Of the thread group.
        per_second: f64,
    },
}

/// A constant throughput timer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Throughput {
    /// Samples per minute of the threads that `mode` names.
    pub(super) per_minute: f64,
    /// The rate as a scenario writes it, when it is a variable: `{{target_throughput}}`.
    pub(super) written: Option<String>,
    /// Which threads the rate is for.
    pub(super) mode: Mode,
    /// The platform divides the rate over its machines.
    pub(super) shared_by_machines: bool,
}

/// Which threads share the rate of a constant throughput timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Each thread.
    Thread,
    /// The threads of all groups together.
    AllGroups,
    /// The threads of the group together.
    Group,
}

/// Classes of timers.
pub(super) fn is_timer(class: &str) -> bool {
    matches!(
        class,
        "ConstantThroughputTimer"
            | "ConstantTimer"
            | "UniformRandomTimer"
            | "PreciseThroughputTimer"
    )
}

impl Timer {
    /// Reads a timer.
    ///
    /// # Errors
    /// A sentence, when its numbers make no sense.
    pub(super) fn read(element: &Element, values: &mut Values) -> Result<Self, String> {
        let number = |values: &mut Values, property: &str| -> Result<f64, String> {
            let text = values.fixed(element.text(property))?;
            let text = text.trim();
            let number = if text.is_empty() { Ok(0.0) } else { text.parse::<f64>() };
            number
                .ok()
                .filter(|number| number.is_finite() && *number >= 0.0)
                .ok_or_else(|| format!("'{property}' is '{text}', not a number"))
        };
        match element.class.as_str() {
            "ConstantTimer" => {
                Ok(Self::Pause { mean_ms: number(values, "ConstantTimer.delay")?, random: false })
            }
            "UniformRandomTimer" => {
                let range = number(values, "RandomTimer.range")?;
                let delay = number(values, "ConstantTimer.delay")?;
                Ok(Self::Pause { mean_ms: delay + range / 2.0, random: range > 0.0 })
            }
            "PreciseThroughputTimer" => {
                let samples = number(values, "throughput")?;
                let period_s = match number(values, "throughputPeriod")? {
                    0.0 => 3600.0,
                    seconds => seconds,
                };
                match samples > 0.0 {
                    true => Ok(Self::Arrivals { per_second: samples / period_s }),
                    false => Err("a throughput of 0 produces no samples".to_owned()),
                }
            }
            _ => Throughput::read(element, values).map(Self::Throughput),
        }
    }
}

impl Throughput {
    fn read(element: &Element, values: &mut Values) -> Result<Self, String> {
        let mode = match element.text("calcMode").trim() {
            "" | "0" => Mode::Thread,
            "1" | "3" => Mode::AllGroups,
            "2" | "4" => Mode::Group,
            other => return Err(format!("'calcMode' is '{other}'; JMeter has 0 to 4")),
        };
        let text = element.text("throughput");
        let value = values.evaluate(text)?;
        let fixed =
            value.fixed().ok_or_else(|| format!("'{text}' differs from client to client"))?;
        let per_minute_value: f64 = fixed
            .trim()
            .parse()
            .ok()
            .filter(|rate: &f64| rate.is_finite() && *rate > 0.0)
            .ok_or_else(|| format!("a throughput of '{fixed}' per minute produces no samples"))?;
        let (written, shared_by_machines) = match &JmeterText::parse(text)?.0[..] {
            [JmeterPiece::Reference { name, arguments, .. }] if name == "__xmeterThroughput" => {
                (xmeter_rate(arguments, values)?, true)
            }
            [JmeterPiece::Reference { .. }] => {
                (value.variable().map(|name| format!("{{{{{name}}}}}/m")), false)
            }
            _ => (None, false),
        };
        Ok(Self { per_minute: per_minute_value, written, mode, shared_by_machines })
    }

    /// The rate per second as a scenario writes it.
    pub(super) fn per_second_text(&self) -> String {
        self.written.clone().unwrap_or_else(|| number_text(self.per_minute / 60.0))
    }
}

/// `{{x}}` for `${__xmeterThroughput(${x}, SEC)}`.
fn xmeter_rate(arguments: &[JmeterText], values: &mut Values) -> Result<Option<String>, String> {
    let mut parts = arguments.iter().map(|argument| values.resolve(argument));
    let Some(rate) = parts.next().transpose()? else { return Ok(None) };
    let unit = parts.next().transpose()?.and_then(|unit| unit.fixed()).unwrap_or_default();
    let unit = unit.trim();
    let Some(name) = rate.variable() else { return Ok(None) };
    // A variable such as '10 ' would be text in the scenario, not a number.
    let plain = rate.fixed().filter(|text| per_minute(text, unit).is_ok());
    Ok(plain.and_then(|_| match unit {
        "SEC" => Some(format!("{{{{{name}}}}}")),
        "MIN" | "" => Some(format!("{{{{{name}}}}}/m")),
        _ => None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jmx::xml::{self, Argument};

    fn read(class: &str, properties: &[(&str, &str)]) -> Result<Timer, String> {
        let properties: String = properties
            .iter()
            .map(|(name, value)| format!("<stringProp name='{name}'>{value}</stringProp>"))
            .collect();
        let plan = format!(
            "<jmeterTestPlan><hashTree><T testclass='{class}'>{properties}</T></hashTree></jmeterTestPlan>"
        );
        let plan = xml::parse(&plan).expect("parses");
        let mut values = Values::new(&[]);
        let rate = Argument { name: "rate".into(), value: "100".into(), ..Argument::default() };
        values.define(&rate).expect("defines");
        Timer::read(&plan.children[0], &mut values)
    }

    fn throughput(text: &str, mode: &str) -> Throughput {
        match read("ConstantThroughputTimer", &[("calcMode", mode), ("throughput", text)]) {
            Ok(Timer::Throughput(throughput)) => throughput,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn throughput_keeps_its_variable() {
        let timer = throughput("${__xmeterThroughput(${rate}, SEC)}", "2");
        assert_eq!((timer.per_minute, timer.per_second_text()), (6000.0, "{{rate}}".to_owned()));
        assert!(timer.shared_by_machines && timer.mode == Mode::Group);
        let timer = throughput("${rate}", "0");
        assert_eq!((timer.per_minute, timer.per_second_text()), (100.0, "{{rate}}/m".to_owned()));
        assert!(!timer.shared_by_machines && timer.mode == Mode::Thread);
        let timer = throughput("${rate}0", "1");
        assert_eq!((timer.per_minute, timer.mode), (1000.0, Mode::AllGroups));
        assert!(timer.per_second_text().starts_with("16.66"));
        assert_eq!(throughput("${__xmeterThroughput(90,MIN)}", "2").per_second_text(), "1.5");
    }

    #[test]
    fn pauses_have_a_mean() {
        let timer = read("ConstantTimer", &[("ConstantTimer.delay", "300")]);
        assert_eq!(timer, Ok(Timer::Pause { mean_ms: 300.0, random: false }));
        let range = [("ConstantTimer.delay", "100"), ("RandomTimer.range", "50.0")];
        let timer = read("UniformRandomTimer", &range);
        assert_eq!(timer, Ok(Timer::Pause { mean_ms: 125.0, random: true }));
        let precise = [("throughput", "${rate}"), ("throughputPeriod", "10")];
        let timer = read("PreciseThroughputTimer", &precise);
        assert_eq!(timer, Ok(Timer::Arrivals { per_second: 10.0 }));
    }

    #[test]
    fn numbers_that_make_no_sense_are_refused() {
        let bad = |class: &str, properties: &[(&str, &str)]| read(class, properties).is_err();
        assert!(bad("ConstantTimer", &[("ConstantTimer.delay", "soon")]));
        assert!(bad("ConstantThroughputTimer", &[("throughput", "0")]));
        assert!(bad("ConstantThroughputTimer", &[("throughput", "1"), ("calcMode", "9")]));
        assert!(bad("PreciseThroughputTimer", &[("throughput", "0")]));
    }
}
