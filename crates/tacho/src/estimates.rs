//! The basis of cost estimates: the calibration of this machine, if there is one.

use tacho_lab::calibration::{Calibration, load, path};
use tacho_lab::needs::Costs;
use tacho_record::CoreRates;

/// The calibration of this machine, if there is one.
pub(crate) fn of_this_machine() -> Option<Calibration> {
    load(&path()?)
}

/// The costs that estimates are made with.
pub(crate) fn costs(calibration: Option<&Calibration>) -> Costs<'_> {
    Costs { calibration }
}

/// The origin of an estimate of cores.
pub(crate) fn rates(calibration: Option<&Calibration>) -> CoreRates {
    let calibrated = |one: &Calibration| one.measured_at.clone();
    calibration
        .map(calibrated)
        .map_or(CoreRates::Typical, |measured_at| CoreRates::Calibrated { measured_at })
}
