//! Why a point of a campaign is not run, as data: `report` has the words.

use serde::{Deserialize, Serialize};
use tacho_scenario::Shortage;

/// Why a point is not run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Obstacle {
    /// This machine lacks something.
    Lacks {
        /// What it lacks.
        shortage: Shortage,
        /// What an estimate of cores rests on; absent where nothing is estimated.
        rates: Option<CoreRates>,
    },
    /// The broker is gone: the series ended before the point.
    BrokerGone,
    /// A message of the program, as it is.
    #[serde(untagged)]
    Message(String),
}

/// The origin of the message rates that a core of the generator is planned with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CoreRates {
    /// A calibration of this machine.
    Calibrated {
        /// When it was made.
        measured_at: String,
    },
    /// A typical machine.
    Typical,
}

impl From<Shortage> for Obstacle {
    fn from(shortage: Shortage) -> Self {
        Self::Lacks { shortage, rates: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_in_place_of_data_is_read_as_a_message() {
        let json = "\"needs 4 descriptors\"";
        let read: Obstacle = serde_json::from_str(json).expect("reads");
        assert_eq!(read, Obstacle::Message("needs 4 descriptors".to_owned()));
        let lacks = Obstacle::from(Shortage::Ports { needed: 2, available: 1 });
        let json = serde_json::to_value(&lacks).expect("is JSON");
        assert_eq!(
            (&json["kind"], &json["shortage"]["resource"]),
            (&"lacks".into(), &"ports".into())
        );
        assert_eq!(serde_json::from_value::<Obstacle>(json).expect("reads"), lacks);
    }
}
