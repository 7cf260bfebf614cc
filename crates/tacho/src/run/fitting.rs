//! Scenarios of the arguments, checked against this machine before anything is started.

use tacho_lab::calibration::Calibration;
use tacho_lab::fit::{Factors, Room, fit};
use tacho_record::Obstacle;
use tacho_rig::Cores;
use tacho_scenario::{Limits, Scenario, ScenarioError};

use super::load_arguments::LoadArguments;
use super::target_arguments::TargetArguments;
use crate::estimates;
use crate::exit::Failure;
use crate::scenario::{failure, too_large};

/// Makes scenarios of the arguments, and finds what this machine lacks for them.
pub(crate) struct Fitting<'a> {
    load: &'a LoadArguments,
    targets: &'a TargetArguments,
    limits: Limits,
    calibration: Option<Calibration>,
    /// The division of the cores where the run starts brokers, and where it starts none.
    cores: [Cores; 2],
    beyond_calibration: bool,
}

impl<'a> Fitting<'a> {
    /// Reads the limits of this machine and its calibration.
    pub(crate) fn new(
        load: &'a LoadArguments,
        targets: &'a TargetArguments,
    ) -> Result<Self, Failure> {
        Ok(Self {
            load,
            targets,
            limits: Limits::of_this_process(),
            calibration: estimates::of_this_machine(),
            cores: [targets.cores(true)?, targets.cores(false)?],
            beyond_calibration: load.beyond_calibration,
        })
    }

    /// Where a generator is not calibrated, let it find its limit itself instead of trusting an
    /// estimate.
    #[must_use]
    pub(crate) fn trusting_only_calibrations(self) -> Self {
        let beyond_calibration = self.beyond_calibration || self.calibration.is_none();
        Self { beyond_calibration, ..self }
    }

    /// The scenario `name` with all changes of the command line; `vars` come after the command
    /// line's own. Else what this machine lacks for it.
    pub(crate) fn scenario(
        &self,
        name: &str,
        vars: &[(String, String)],
    ) -> Result<Result<Scenario, Obstacle>, ScenarioError> {
        let scenario = self.load.try_scenario(name, vars, self.targets)?;
        let adjustment = self.load.adjust.adjustment();
        let asked = Factors { clients: adjustment.scale_clients, rates: adjustment.scale };
        let rescale = |Factors { clients, rates }: Factors| {
            let mut load = self.load.clone();
            load.adjust = load.adjust.scaled(clients, rates);
            load.try_scenario(name, vars, self.targets).ok()
        };
        let fitted = fit(&scenario, &self.room(&scenario), (asked, &rescale));
        Ok(fitted.map(|()| scenario))
    }

    /// The same, where a scenario that does not fit is an error.
    pub(crate) fn only_scenario(
        &self,
        name: &str,
        vars: &[(String, String)],
    ) -> Result<Scenario, Failure> {
        let scenario = self.scenario(name, vars).map_err(|error| failure(&error))?;
        scenario.map_err(|obstacle| too_large(name, &obstacle))
    }

    fn room(&self, scenario: &Scenario) -> Room<'_> {
        let brokers = scenario.targets_in_use();
        let urls = || brokers.iter().map(|(_, target)| target.broker.as_ref());
        let [with_brokers, alone] = &self.cores;
        let cores = if urls().any(|url| url.is_none()) { with_brokers } else { alone };
        let one_machine = urls().any(|url| url.is_none_or(|url| url.is_loopback()));
        let most = cores.generator_threads(None, one_machine);
        let threads = cores.generator_threads(scenario.load.threads, one_machine);
        Room {
            limits: self.limits,
            one_machine,
            generator_cores: most.min(threads) as u64,
            calibration: self.calibration.as_ref(),
            beyond_calibration: self.beyond_calibration,
        }
    }
}
