//! Does a scenario fit this machine? All that it lacks, and with which factors it would fit, before
//! anything is started.

use tacho_record::{CoreRates, Obstacle, Remedy};
use tacho_scenario::{Limits, Needs, Scenario, Shortage};

use crate::calibration::Calibration;
use crate::needs::{Costs, client_needs, estimate};

/// Clients up to which a scenario that does not fit is spelled out for its rates.
const CLIENTS_SPELLED_OUT_MAX: u64 = 250_000;

/// Decades below the factor that was asked for in which smaller ones are tried.
const DECADES: i32 = 6;

/// What there is for a scenario.
#[derive(Clone, Copy, Debug)]
pub struct Room<'a> {
    /// Limits of the machine with the generator.
    pub limits: Limits,
    /// The broker is on it, too.
    pub one_machine: bool,
    /// Cores of the generator.
    pub generator_cores: u64,
    /// What the generator carries here; without it, what it carries on a typical machine.
    pub calibration: Option<&'a Calibration>,
    /// Take loads beyond that, too.
    pub beyond_calibration: bool,
}

/// The factors of `--scale-clients` and `--scale`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Factors {
    /// Of clients.
    pub clients: f64,
    /// Of rates.
    pub rates: f64,
}

/// Makes the same scenario with other factors; `None` where that cannot be.
pub type Rescale<'a> = dyn Fn(Factors) -> Option<Scenario> + 'a;

/// Checks that `scenario`, which has the factors `asked`, fits into `room`.
///
/// # Errors
/// All that is missing, with the largest factors that fit.
pub fn fit(
    scenario: &Scenario,
    room: &Room<'_>,
    (asked, rescale): (Factors, &Rescale<'_>),
) -> Result<(), Obstacle> {
    let mut shortages = room.shortages(&client_needs(scenario));
    let lacks_for_clients = !shortages.is_empty();
    // Nothing is spelled out that could take more memory than there is.
    if !lacks_for_clients || scenario.clients() <= CLIENTS_SPELLED_OUT_MAX {
        shortages = room.shortages(&room.estimate(scenario)?);
    }
    if shortages.is_empty() {
        return Ok(());
    }
    let lacks_cores = shortages.iter().any(is_of_cores);
    let rates = lacks_cores.then(|| room.core_rates());
    let remedy = remedy(room, lacks_for_clients, (asked, rescale));
    Err(Obstacle::Lacks { shortages, rates, remedy })
}

const fn is_of_cores(shortage: &Shortage) -> bool {
    matches!(shortage, Shortage::Cores { .. })
}

impl Room<'_> {
    fn estimate(&self, scenario: &Scenario) -> Result<Needs, Obstacle> {
        let costs = Costs { calibration: self.calibration };
        estimate(scenario, costs).map_err(|error| Obstacle::Message(error.to_string()))
    }

    fn shortages(&self, needs: &Needs) -> Vec<Shortage> {
        let mut shortages = needs.shortages(&self.limits, self.one_machine, self.generator_cores);
        if self.beyond_calibration {
            shortages.retain(|shortage| !is_of_cores(shortage));
        }
        shortages
    }

    fn core_rates(&self) -> CoreRates {
        match self.calibration {
            Some(one) => CoreRates::Calibrated { measured_at: one.measured_at.clone() },
            None => CoreRates::Typical,
        }
    }
}

/// The largest factors that fit: of clients where there are too many, then of rates.
fn remedy(
    room: &Room<'_>,
    lacks_for_clients: bool,
    (asked, rescale): (Factors, &Rescale<'_>),
) -> Option<Remedy> {
    let fits = |clients: f64| {
        let scaled = rescale(Factors { clients, ..asked });
        scaled.is_some_and(|scaled| room.shortages(&client_needs(&scaled)).is_empty())
    };
    let clients = match lacks_for_clients {
        true => Some(largest(asked.clients, fits)?),
        false => None,
    };
    let scaled = rescale(Factors { clients: clients.unwrap_or(asked.clients), ..asked })?;
    let needed = room.estimate(&scaled).ok()?.generator_cores;
    let available = room.generator_cores as f64;
    let rates = match needed > available && !room.beyond_calibration {
        true => Some(largest(asked.rates, |rates| needed * rates / asked.rates <= available)?),
        false => None,
    };
    Some(Remedy { scale_clients: clients, scale: rates })
}

/// The largest number of two digits below `limit` for which `fits` holds, as it does for all
/// smaller ones.
fn largest(limit: f64, fits: impl Fn(f64) -> bool) -> Option<f64> {
    let top = limit.log10().ceil() as i32;
    let decades = top - DECADES..=top;
    let numbers = decades.flat_map(|decade| (10..100).map(move |digits| number(digits, decade)));
    let numbers: Vec<f64> = numbers.filter(|number| *number < limit).collect();
    let fitting = numbers.partition_point(|number| fits(*number));
    numbers.get(fitting.checked_sub(1)?).copied()
}

/// `digits` * 10^(`decade` - 2), as near as a number can be to what its decimals say.
fn number(digits: u32, decade: i32) -> f64 {
    match decade - 2 {
        up if up >= 0 => f64::from(digits) * 10_f64.powi(up),
        down => f64::from(digits) / 10_f64.powi(-down),
    }
}

#[cfg(test)]
mod tests {
    use tacho_scenario::Adjustment;

    use super::*;
    use crate::calibration::RateCell;

    const AS_IT_IS: Factors = Factors { clients: 1.0, rates: 1.0 };

    fn room(descriptors_max: u64) -> Room<'static> {
        let limits =
            Limits { descriptors_max, ports_per_address: 28_232, memory_bytes: 1 << 30, cores: 2 };
        Room {
            limits,
            one_machine: true,
            generator_cores: 1,
            calibration: None,
            beyond_calibration: false,
        }
    }

    fn scaled(name: &str, factors: Factors) -> Option<Scenario> {
        let Factors { clients: scale_clients, rates: scale } = factors;
        let adjustment = Adjustment { scale, scale_clients, ..Adjustment::NONE };
        Scenario::load(name, &[], &adjustment, Limits::NONE).ok()
    }

    fn fitted(name: &str, room: &Room<'_>) -> Result<(), Obstacle> {
        let scenario = scaled(name, AS_IT_IS).expect("a scenario");
        fit(&scenario, room, (AS_IT_IS, &|factors| scaled(name, factors)))
    }

    fn lacks(name: &str, room: &Room<'_>) -> (Vec<Shortage>, Option<CoreRates>, Option<Remedy>) {
        match fitted(name, room) {
            Err(Obstacle::Lacks { shortages, rates, remedy }) => (shortages, rates, remedy),
            other => panic!("{name}: {other:?}"),
        }
    }

    /// A hundred publishers to a hundred receivers each: 100 in and 10,000 out.
    const FAN_OUT: &str = "100_10k_qos1_p32_1mps";

    #[test]
    fn a_load_beyond_the_generator_is_told_with_the_rate_that_fits() {
        assert_eq!(fitted(FAN_OUT, &room(20_000)), Ok(()));
        let text = "name = 'x'\n[groups.a]\nclients = 20\n[[groups.a.publish]]\ntopic = 'a'\nqos = 1\n\
                    rate = { total = 20000 }\n[groups.b]\nclients = 50\n\
                    [[groups.b.subscribe]]\nfilter = 'a'\n";
        let source = tacho_scenario::SourceText::new("x.toml", text);
        let load = |factors: Factors| {
            let Factors { clients: scale_clients, rates: scale } = factors;
            let adjustment = Adjustment { scale, scale_clients, ..Adjustment::NONE };
            Scenario::parse_adjusted(&source, &[], &adjustment, Limits::NONE).ok()
        };
        let scenario = load(AS_IT_IS).expect("a scenario");
        let told = fit(&scenario, &room(20_000), (AS_IT_IS, &load));
        let Err(Obstacle::Lacks { shortages, rates, remedy }) = told else { panic!("{told:?}") };
        let [Shortage::Cores { needed: 7, available: 1, in_per_s, out_per_s, per_core }] =
            shortages[..]
        else {
            panic!("{shortages:?}")
        };
        assert_eq!((in_per_s, out_per_s, per_core), (20_000.0, 1e6, 150_000));
        assert_eq!(rates, Some(CoreRates::Typical));
        let remedy = remedy.expect("a smaller rate fits");
        assert_eq!(remedy, Remedy { scale_clients: None, scale: Some(0.14) });
        let fitting = Factors { rates: 0.14, ..AS_IT_IS };
        let smaller = load(fitting).expect("a scenario");
        assert_eq!(fit(&smaller, &room(20_000), (fitting, &load)), Ok(()));
        let next = Factors { rates: 0.15, ..AS_IT_IS };
        let larger = load(next).expect("a scenario");
        assert!(fit(&larger, &room(20_000), (next, &load)).is_err());
        // Who knows better goes on.
        let beyond = Room { beyond_calibration: true, ..room(20_000) };
        assert_eq!(fit(&scenario, &beyond, (AS_IT_IS, &load)), Ok(()));
    }

    #[test]
    fn a_calibration_decides_in_place_of_the_estimate() {
        let rate =
            RateCell { qos: 1, payload_bytes: 32, per_core: 10_000.0, ..RateCell::default() };
        let calibration = Calibration { rates: vec![rate], ..Calibration::default() };
        let room = Room { calibration: Some(&calibration), ..room(20_000) };
        let (shortages, rates, remedy) = lacks(FAN_OUT, &room);
        assert!(matches!(shortages[..], [Shortage::Cores { needed: 2, per_core: 8000, .. }]));
        assert!(matches!(rates, Some(CoreRates::Calibrated { .. })));
        assert_eq!(remedy.and_then(|remedy| remedy.scale), Some(0.79));
    }

    #[test]
    fn all_that_is_missing_is_told_at_once_with_the_largest_factor_that_fits() {
        let name = "50k_50k_qos1_p1024_1mps";
        let elsewhere = Room { one_machine: false, ..room(20_000) };
        let (shortages, _, remedy) = lacks(name, &elsewhere);
        let (descriptors, ports) = (
            Shortage::Descriptors { needed: 100_064, available: 20_000 },
            Shortage::Ports { needed: 100_000, available: 28_232 },
        );
        assert_eq!(shortages, [descriptors, ports]);
        let factor = remedy.and_then(|remedy| remedy.scale_clients).expect("a smaller one fits");
        assert_eq!(factor, 0.19, "2 * 9,500 and 64 descriptors of 20,000");
        let with = |clients| scaled(name, Factors { clients, ..AS_IT_IS }).expect("a scenario");
        assert!(elsewhere.shortages(&client_needs(&with(0.19))).is_empty());
        assert!(!elsewhere.shortages(&client_needs(&with(0.20))).is_empty());
    }

    #[test]
    fn a_hundred_million_clients_are_not_spelled_out() {
        let (shortages, rates, remedy) = lacks("100_100000k_qos0_p32_1mps", &room(u64::MAX));
        assert!(matches!(shortages[..], [Shortage::Memory { .. }]), "{shortages:?}");
        assert_eq!(rates, None);
        let factor = remedy.and_then(|remedy| remedy.scale_clients).expect("a smaller one fits");
        assert_eq!(factor, 0.0013);
    }

    #[test]
    fn numbers_have_two_digits() {
        assert_eq!(largest(1.0, |number| number <= 0.1999), Some(0.19));
        assert_eq!(largest(0.5, |number| number <= 0.0123), Some(0.012));
        assert_eq!(largest(30.0, |number| number <= 12.9), Some(12.0));
        assert_eq!(largest(1.0, |_| true), Some(0.99));
        assert_eq!(largest(1.0, |_| false), None);
        assert_eq!(number(19, 0).to_string(), "0.19");
    }
}
