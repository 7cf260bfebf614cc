//! The basis of cost estimates: the calibration of this machine, if there is one.

use tacho_lab::calibration::{Calibration, load, path};
use tacho_lab::needs::Costs;

/// The calibration of this machine, if there is one.
pub(crate) fn of_this_machine() -> Option<Calibration> {
    load(&path()?)
}

/// The costs that estimates are made with.
pub(crate) fn costs(calibration: Option<&Calibration>) -> Costs<'_> {
    Costs { calibration }
}

/// The origin of an estimate of cores, for people.
pub(crate) fn source(calibration: Option<&Calibration>) -> String {
    match calibration {
        Some(one) => format!("calibrated here on {}", one.measured_at),
        None => "those of a typical machine; 'tacho calibrate' measures this one".to_owned(),
    }
}
