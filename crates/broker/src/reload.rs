//! The configuration of a running broker, read again: what can change without a restart does, the
//! rest is told. A configuration that cannot be used changes nothing.

mod listeners;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use serde::Serialize;
use tacho_net::Remote;

use crate::access::{AccessControl, AccessReloaded};
use crate::certificates::{Certificates, Reloaded};
use crate::config::{Applies, Config, EffectiveValue, Limits};
use crate::listeners::Listening;
use crate::mail::Mail;
use crate::shard::Shared;
use listeners::{ListenerChange, ListenerOwners, ListenerPlan};

/// How the program that runs the broker takes part in a reload.
pub struct ReloadHooks {
    /// Reads the configuration again; a sentence if it cannot be used.
    pub read: Box<dyn Fn() -> Result<Config, String> + Send + Sync>,
    /// Applies what is the program's own, such as the levels of its log.
    pub applied: Box<dyn Fn(&Config) + Send + Sync>,
}

/// A value that has changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConfigChange {
    /// Its key, such as `limits.sessions_max`.
    pub key: String,
    /// As it was; absent: it was not set.
    pub from: Option<String>,
    /// As it is; absent: it is not set any more.
    pub to: Option<String>,
    /// When that takes effect.
    pub applies: Applies,
}

/// What a reload has done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReloadReport {
    /// Certificates of listeners.
    pub certificates: Reloaded,
    /// Users, rules and bans.
    pub access: AccessReloaded,
    /// Changes of the configuration that are in force.
    pub applied: Vec<ConfigChange>,
    /// Those that take effect at the next start.
    pub waiting: Vec<ConfigChange>,
    /// What could not be done: listeners that are not open.
    pub problems: Vec<String>,
}

/// Reads the configuration of a running broker again. Cheap to clone.
#[derive(Clone)]
pub struct Reloads(Arc<ReloadState>);

struct ReloadState {
    hooks: OnceLock<ReloadHooks>,
    remote: Remote<Mail>,
    certificates: Certificates,
    access: AccessControl,
    /// Weak, since the journal's last records follow the end of the shards.
    shared: Weak<Shared>,
    listening: Arc<Listening>,
    /// As at the start: what needs a restart is in force as it says.
    base: Config,
    /// As many connections as descriptors allow.
    connections_possible: usize,
    in_force: Mutex<InForce>,
    /// Held during a reload.
    busy: Mutex<()>,
}

/// The configuration in force.
struct InForce {
    values: Vec<EffectiveValue>,
    limits: Arc<Limits>,
}

impl Reloads {
    pub(crate) fn new(
        config: &Config,
        (certificates, access): (Certificates, AccessControl),
        (shared, listening): (&Arc<Shared>, &Arc<Listening>),
        remote: Remote<Mail>,
        connections_possible: usize,
    ) -> Self {
        let limits = Arc::clone(&shared.limits);
        let in_force = Mutex::new(InForce { values: config.effective(), limits });
        let hooks = OnceLock::new();
        Self(Arc::new(ReloadState {
            hooks,
            remote,
            certificates,
            access,
            shared: Arc::downgrade(shared),
            listening: Arc::clone(listening),
            base: config.clone(),
            connections_possible,
            in_force,
            busy: Mutex::default(),
        }))
    }

    /// From now on a reload reads the configuration, too. The first hooks count.
    pub fn use_hooks(&self, hooks: ReloadHooks) {
        let _ = self.0.hooks.set(hooks);
    }

    /// Every value in force, secrets left out, in the order of their keys.
    pub(crate) fn values(&self) -> Vec<EffectiveValue> {
        self.lock().values.clone()
    }

    /// Those of all listeners.
    pub(crate) fn certificates(&self) -> Certificates {
        self.0.certificates.clone()
    }

    /// The limits in force.
    pub(crate) fn limits(&self) -> Arc<Limits> {
        Arc::clone(&self.lock().limits)
    }

    /// Reads the configuration, certificates, users, rules and bans again, and applies what can be.
    ///
    /// # Errors
    /// The configuration cannot be used: nothing has changed.
    pub fn reload(&self) -> Result<ReloadReport, String> {
        let state = &*self.0;
        let _one_at_a_time = state.busy.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut changes, mut problems) = (Changes::default(), Vec::new());
        if let Some(hooks) = state.hooks.get() {
            let config = (hooks.read)()?;
            let limits = Arc::new(self.limits().changed_to(&config.limits));
            let planned = state.plan_listeners(&config, &limits)?;
            let listeners_wait = matches!(planned, ListenerChange::Waits);
            changes = self.lock().take(config.effective(), listeners_wait);
            state.apply(&limits);
            self.lock().limits = limits;
            if let ListenerChange::Planned(plan) = planned {
                problems = state.change_listeners(*plan);
            }
            (hooks.applied)(&config);
        }
        Ok(ReloadReport {
            certificates: state.certificates.reload(),
            access: state.access.reload(),
            applied: changes.applied,
            waiting: changes.waiting,
            problems,
        })
    }

    fn lock(&self) -> MutexGuard<'_, InForce> {
        self.0.in_force.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReloadState {
    fn owners<'a>(&'a self, shared: &'a Shared) -> ListenerOwners<'a> {
        let Self { listening, access, certificates, remote, .. } = self;
        ListenerOwners { shared, listening, access, certificates, remote }
    }

    fn plan_listeners(&self, new: &Config, limits: &Limits) -> Result<ListenerChange, String> {
        match self.shared.upgrade() {
            Some(shared) => self.owners(&shared).plan(&self.base, limits, new),
            None => Ok(ListenerChange::Nothing),
        }
    }

    fn change_listeners(&self, plan: ListenerPlan) -> Vec<String> {
        let Some(shared) = self.shared.upgrade() else { return Vec::new() };
        let problems = self.owners(&shared).apply(plan);
        for problem in &problems {
            tracing::error!("listeners of the changed configuration: {problem}");
        }
        problems
    }

    fn apply(&self, limits: &Arc<Limits>) {
        let Some(shared) = self.shared.upgrade() else { return };
        let connections_max = match limits.connections_max {
            0 => self.connections_possible,
            wanted => wanted.min(self.connections_possible),
        };
        shared.connections.set_max(connections_max);
        shared.handshakes.set_max(limits.handshakes_max);
        shared.subscriptions.set_max(limits);
        shared.retained_totals.set_max(limits);
        for shard in 0..self.remote.shards() {
            self.remote.post(shard, Mail::LimitsChanged(Arc::clone(limits)));
        }
    }
}

/// What has changed in a configuration.
#[derive(Default)]
struct Changes {
    applied: Vec<ConfigChange>,
    waiting: Vec<ConfigChange>,
}

impl InForce {
    /// Takes the values that apply without a restart.
    fn take(&mut self, new: Vec<EffectiveValue>, listeners_wait: bool) -> Changes {
        let by_key = |values: &[EffectiveValue]| -> BTreeMap<String, EffectiveValue> {
            values.iter().map(|value| (value.key.clone(), value.clone())).collect()
        };
        let (old, new) = (by_key(&self.values), by_key(&new));
        let mut changes = Changes::default();
        let mut values = Vec::new();
        for key in old.keys().chain(new.keys()).collect::<BTreeSet<_>>() {
            let (before, after) = (old.get(key), new.get(key));
            let text = |value: Option<&EffectiveValue>| value.map(|value| value.value.clone());
            let applies = before.or(after).map_or(Applies::Restart, |value| value.applies);
            let section = key.split('.').next().unwrap_or_default();
            let is_of_listeners = ["listen", "listeners", "tls"].contains(&section);
            let applies = match is_of_listeners && listeners_wait {
                true => Applies::Restart,
                false => applies,
            };
            let waits = applies == Applies::Restart;
            let (from, to) = (text(before), text(after));
            if from != to {
                let change = ConfigChange { key: key.clone(), from, to, applies };
                let list = if waits { &mut changes.waiting } else { &mut changes.applied };
                list.push(change);
                values.extend(if waits { before } else { after }.cloned());
            } else {
                // It may come from elsewhere by now.
                values.extend(after.cloned());
            }
        }
        self.values = values;
        changes
    }
}

impl fmt::Display for ConfigChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "unset".to_owned());
        write!(f, "{} {} -> {}", self.key, shown(&self.from), shown(&self.to))
    }
}

/// A sentence for the log.
impl fmt::Display for ReloadReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.certificates, self.access)?;
        for (list, name) in [(&self.applied, "applied"), (&self.waiting, "at the next start")] {
            let shown: Vec<String> = list.iter().map(ToString::to_string).collect();
            if !shown.is_empty() {
                write!(f, "; {name}: {}", shown.join(", "))?;
            }
        }
        for problem in &self.problems {
            write!(f, "; {problem}")?;
        }
        Ok(())
    }
}
