//! `--tolerate`: how much a machine may be disturbed.

use clap::Args;
use tacho_record::DisturbanceLimits;

/// A limit that the user raises.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Tolerated {
    kind: Kind,
    percent: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Steal,
    Others,
    Waiting,
}

/// How much a machine may be disturbed.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct TolerateArguments {
    /// Count seconds that are disturbed by less than this: steal=5% (of the broker's host;
    /// default 1%), others=10% (other programs on the broker's cores; default 5%) or waiting=5%
    /// (the generator for its own core; default 1%). Several separated by commas. The record and
    /// the report say so
    #[arg(long = "tolerate", value_name = "KIND=PERCENT", value_delimiter = ',',
          value_parser = Tolerated::parse, help_heading = "Output")]
    tolerated: Vec<Tolerated>,
}

impl Tolerated {
    fn parse(text: &str) -> Result<Self, String> {
        let form = || format!("'{text}': write steal=5%, others=10% or waiting=5%");
        let (kind, percent) = text.split_once('=').ok_or_else(form)?;
        let kind = match kind.trim() {
            "steal" => Kind::Steal,
            "others" => Kind::Others,
            "waiting" => Kind::Waiting,
            _ => return Err(form()),
        };
        match percent.trim().trim_end_matches('%').trim().parse::<f64>() {
            Ok(percent) if percent > 0.0 && percent <= 100.0 => Ok(Self { kind, percent }),
            _ => Err(format!("'{text}': write a percentage above 0 and up to 100")),
        }
    }
}

impl TolerateArguments {
    /// The limits in force.
    pub(crate) fn limits(&self) -> DisturbanceLimits {
        let mut limits = DisturbanceLimits::default();
        for Tolerated { kind, percent } in &self.tolerated {
            *match kind {
                Kind::Steal => &mut limits.steal_percent,
                Kind::Others => &mut limits.others_percent,
                Kind::Waiting => &mut limits.waiting_percent,
            } = *percent;
        }
        limits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_raised_one_by_one() {
        let tolerated = ["steal=5%", "waiting = 2.5"].map(|text| Tolerated::parse(text).unwrap());
        let limits = TolerateArguments { tolerated: tolerated.to_vec() }.limits();
        let expected = DisturbanceLimits {
            steal_percent: 5.0,
            waiting_percent: 2.5,
            ..DisturbanceLimits::default()
        };
        assert_eq!(limits, expected);
    }

    #[test]
    fn a_wrong_limit_is_refused_with_the_form() {
        for text in ["steal", "stolen=5%", "steal=0%", "steal=101%", "steal=much"] {
            let error = Tolerated::parse(text).expect_err(text);
            assert!(error.contains(text) && error.contains("write"), "{error}");
        }
    }
}
