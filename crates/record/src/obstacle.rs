//! Why a point of a campaign is not run, as data: `report` has the words.

use serde::{Deserialize, Deserializer, Serialize};
use tacho_scenario::Shortage;

/// Why a point is not run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Obstacle {
    /// This machine lacks something.
    Lacks {
        /// All that it lacks; cores of the generator last. Earlier records have one.
        #[serde(alias = "shortage", deserialize_with = "one_or_more")]
        shortages: Vec<Shortage>,
        /// What an estimate of cores rests on; absent where nothing is estimated.
        rates: Option<CoreRates>,
        /// With what it fits; absent where nothing is known to help.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remedy: Option<Remedy>,
    },
    /// The broker is gone: the series ended before the point.
    BrokerGone,
    /// A message of the program, as it is.
    #[serde(untagged)]
    Message(String),
}

/// The largest factors, in two digits, with which a scenario fits this machine; absent where the
/// factor stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Remedy {
    /// Value of `--scale-clients`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale_clients: Option<f64>,
    /// Value of `--scale`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<f64>,
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

impl Obstacle {
    /// One obstacle out of those of several points: of each resource the greatest need, and the
    /// factors with which all of them fit. `None` where nothing is lacking.
    pub fn greatest<'a>(obstacles: impl IntoIterator<Item = &'a Self>) -> Option<Self> {
        let mut all: Vec<Shortage> = Vec::new();
        let (mut basis, mut smallest) = (None, Some(Remedy::default()));
        for obstacle in obstacles {
            let Self::Lacks { shortages, rates, remedy } = obstacle else { continue };
            for shortage in shortages {
                let kind = std::mem::discriminant(shortage);
                match all.iter_mut().find(|known| std::mem::discriminant(*known) == kind) {
                    Some(known) if needed(known) < needed(shortage) => known.clone_from(shortage),
                    Some(_) => {}
                    None => all.push(shortage.clone()),
                }
            }
            basis = basis.or_else(|| rates.clone());
            smallest = smallest.zip(*remedy).map(|(one, other)| Remedy {
                scale_clients: least(one.scale_clients, other.scale_clients),
                scale: least(one.scale, other.scale),
            });
        }
        all.sort_by_key(|shortage| matches!(shortage, Shortage::Cores { .. }));
        let remedy = smallest.filter(|remedy| *remedy != Remedy::default());
        (!all.is_empty()).then_some(Self::Lacks { shortages: all, rates: basis, remedy })
    }
}

fn least(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    one.into_iter().chain(other).reduce(f64::min)
}

const fn needed(shortage: &Shortage) -> u64 {
    match shortage {
        Shortage::Descriptors { needed, .. }
        | Shortage::Ports { needed, .. }
        | Shortage::Memory { needed, .. }
        | Shortage::Cores { needed, .. } => *needed,
        Shortage::Bridge { .. } => 0,
    }
}

impl From<Shortage> for Obstacle {
    fn from(shortage: Shortage) -> Self {
        Self::Lacks { shortages: vec![shortage], rates: None, remedy: None }
    }
}

fn one_or_more<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Shortage>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrMore {
        One(Shortage),
        More(Vec<Shortage>),
    }
    Ok(match OneOrMore::deserialize(from)? {
        OneOrMore::One(shortage) => vec![shortage],
        OneOrMore::More(shortages) => shortages,
    })
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
            (&json["kind"], &json["shortages"][0]["resource"]),
            (&"lacks".into(), &"ports".into())
        );
        assert_eq!(serde_json::from_value::<Obstacle>(json).expect("reads"), lacks);
    }

    #[test]
    fn a_single_shortage_of_an_earlier_record_is_read() {
        let json = r#"{"kind": "lacks", "rates": null,
                       "shortage": {"resource": "ports", "needed": 2, "available": 1}}"#;
        let read: Obstacle = serde_json::from_str(json).expect("reads");
        assert_eq!(read, Shortage::Ports { needed: 2, available: 1 }.into());
    }

    #[test]
    fn several_points_are_told_by_their_greatest_needs() {
        let available = 20_000;
        let lacks = |needed, scale_clients| Obstacle::Lacks {
            shortages: vec![Shortage::Descriptors { needed, available }],
            rates: None,
            remedy: Some(Remedy { scale_clients: Some(scale_clients), scale: None }),
        };
        let per_core = 150_000;
        let (in_per_s, out_per_s) = (1e6, 1e6);
        let cores = Shortage::Cores { needed: 14, available: 1, in_per_s, out_per_s, per_core };
        let slower = Obstacle::Lacks {
            shortages: vec![cores.clone()],
            rates: Some(CoreRates::Typical),
            remedy: Some(Remedy { scale_clients: None, scale: Some(0.07) }),
        };
        let gone = Obstacle::BrokerGone;
        let found =
            Obstacle::greatest([&slower, &lacks(20_064, 0.99), &gone, &lacks(100_064, 0.19)]);
        let descriptors = Shortage::Descriptors { needed: 100_064, available };
        let remedy = Some(Remedy { scale_clients: Some(0.19), scale: Some(0.07) });
        let shortages = vec![descriptors, cores];
        let all = Obstacle::Lacks { shortages, rates: Some(CoreRates::Typical), remedy };
        assert_eq!(found, Some(all));
        // Where nothing helps one of them, nothing helps them all.
        let hopeless = Obstacle::from(Shortage::Ports { needed: 2, available: 1 });
        let found = Obstacle::greatest([&hopeless, &lacks(20_064, 0.99)]);
        assert!(matches!(found, Some(Obstacle::Lacks { remedy: None, .. })), "{found:?}");
        assert_eq!(Obstacle::greatest([&gone]), None);
    }
}
