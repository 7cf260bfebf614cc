//! Timed actions, checked.

use std::collections::BTreeMap;
use std::time::Duration;

use toml::Spanned;

use super::checker::{Checked, Checker};
use crate::action::{Action, ActionKind};
use crate::quantity::TimeSpan;
use crate::raw::{RawAction, RawClients};
use crate::types::{Group, Phases, Target};

/// The parts of a scenario that actions refer to.
#[derive(Clone, Copy)]
pub(super) struct ActionContext<'a> {
    pub(super) groups: &'a BTreeMap<String, Group>,
    pub(super) targets: &'a BTreeMap<String, Target>,
    pub(super) phases: &'a Phases,
}

/// Keys of which an action has one.
const KINDS: &str = "disconnect, pause, takeover, subscribe, kill or run";

impl Checker<'_> {
    pub(super) fn actions(
        &self,
        raw: &[Spanned<RawAction>],
        context: ActionContext<'_>,
    ) -> Checked<Vec<Action>> {
        let mut actions = Vec::with_capacity(raw.len());
        let mut count = 0;
        for raw in raw {
            let action = self.action(raw, context)?;
            count += action.times as usize;
            if count > Action::MAX {
                return Err(self
                    .error(raw.span(), "the actions occur too often in one run")
                    .label(format!("at most {} occurrences of all actions", Action::MAX)));
            }
            actions.push(action);
        }
        Ok(actions)
    }

    fn action(&self, raw: &Spanned<RawAction>, context: ActionContext<'_>) -> Checked<Action> {
        let fields = raw.get_ref();
        let kind = self.action_kind(raw, context)?;
        let measure = context.phases.measure;
        let at = *fields.at.get_ref();
        if at.0 >= measure.0 {
            return Err(self
                .error(fields.at.span(), "the action is due after the end of the measured phase")
                .label(format!("it takes {measure}")));
        }
        if let (Some(times), None) = (&fields.times, &fields.every) {
            return Err(self
                .error(times.span(), "'times' needs 'every'")
                .help("add every = \"10s\""));
        }
        let every = fields.every.as_ref().map(|every| *every.get_ref());
        if let (Some(value), Some(every)) = (&fields.every, every)
            && every.0 < Duration::from_millis(1)
        {
            return Err(self
                .error(value.span(), "the interval is too short")
                .label("at least 1ms"));
        }
        let fitting = every.map_or(1, |every| {
            // As often as it begins before the end.
            ((measure.0 - at.0).as_nanos() - 1) / every.0.as_nanos() + 1
        });
        let fitting = u32::try_from(fitting).unwrap_or(u32::MAX);
        let times = fields.times.as_ref().map(|times| {
            let count = self.whole(times, "the number of times", 1, Action::MAX as u64)? as u32;
            if count > fitting {
                return Err(self
                    .error(times.span(), "the measured phase is too short for this number of times")
                    .label(format!("{fitting} fit into its {measure}")));
            }
            Ok(count)
        });
        let times = times.transpose()?.unwrap_or(fitting);
        let action = Action {
            at,
            // Once is once.
            every: every.filter(|_| times > 1),
            times,
            over: fields.over.as_ref().map_or_else(TimeSpan::default, |over| *over.get_ref()),
            timeout: fields.timeout.as_ref().map(|timeout| *timeout.get_ref()),
            kind,
        };
        let stray = match (&action.kind, &fields.over, &fields.timeout) {
            (ActionKind::Run(_) | ActionKind::Kill { .. }, Some(over), _) => {
                Some((over.span(), "'over' applies only to actions on clients"))
            }
            (kind, _, Some(timeout)) if !matches!(kind, ActionKind::Run(_)) => {
                Some((timeout.span(), "'timeout' applies only to 'run'"))
            }
            _ => None,
        };
        match stray {
            Some((span, title)) => Err(self.error(span, title).label("remove it")),
            None => Ok(action),
        }
    }

    fn action_kind(
        &self,
        raw: &Spanned<RawAction>,
        context: ActionContext<'_>,
    ) -> Checked<ActionKind> {
        let fields = raw.get_ref();
        let mut kinds = Vec::new();
        if let Some(disconnect) = &fields.disconnect {
            let (group, share) = self.clients(&disconnect.clients(), context)?;
            kinds.push(ActionKind::Disconnect { group, share, cleanly: disconnect.cleanly });
        }
        if let Some(pause) = &fields.pause {
            let (group, share) = self.clients(&pause.clients(), context)?;
            let length = self.pause(&pause.length, &context.groups[&group])?;
            kinds.push(ActionKind::Pause { group, share, length });
        }
        if let Some(takeover) = &fields.takeover {
            let (group, share) = self.clients(takeover, context)?;
            kinds.push(ActionKind::Takeover { group, share });
        }
        if let Some(subscribe) = &fields.subscribe {
            let (group, share) = self.clients(subscribe, context)?;
            if context.groups[&group].subscribe.is_empty() {
                return Err(self
                    .error(subscribe.group.span(), format!("group '{group}' has no filters"))
                    .help(format!("add [[groups.{group}.subscribe]]")));
            }
            kinds.push(ActionKind::Subscribe { group, share });
        }
        if let Some(kill) = &fields.kill {
            let target = kill.target.as_ref();
            let target = target.map(|name| self.target_name(name, context.targets)).transpose()?;
            kinds.push(ActionKind::Kill { target });
        }
        if let Some(run) = &fields.run {
            if run.get_ref().trim().is_empty() {
                return Err(self.error(run.span(), "the command is empty"));
            }
            kinds.push(ActionKind::Run(run.get_ref().clone()));
        }
        match (kinds.pop(), kinds.is_empty()) {
            (Some(kind), true) => Ok(kind),
            (None, _) => Err(self
                .error(raw.span(), "this action does nothing")
                .help(format!("add one of {KINDS}"))),
            (Some(_), false) => Err(self
                .error(raw.span(), "an action has exactly one kind")
                .label(format!("one of {KINDS}"))
                .help("write several [[actions]]")),
        }
    }

    /// A group that there is, and a share of it.
    fn clients(&self, raw: &RawClients, context: ActionContext<'_>) -> Checked<(String, f64)> {
        let name = raw.group.get_ref();
        let Some(group) = context.groups.get(name) else {
            let known = context.groups.keys().map(String::as_str);
            return Err(self.unknown_name(&raw.group, ("group", "groups"), known));
        };
        if group.absent || group.offline.is_some() {
            return Err(self
                .error(
                    raw.group.span(),
                    format!("group '{name}' leaves by 'absent' or 'offline' already"),
                )
                .label("remove that key of the group"));
        }
        let share = raw.share.as_ref().map_or(1.0, |share| *share.get_ref());
        if let Some(value) = raw.share.as_ref().filter(|_| !(share > 0.0 && share <= 1.0)) {
            return Err(self
                .error(value.span(), format!("a share cannot be {share}"))
                .label("above 0 and at most 1"));
        }
        Ok((name.clone(), share))
    }

    /// A pause that the broker does not take for a client that is gone.
    fn pause(&self, length: &Spanned<TimeSpan>, group: &Group) -> Checked<TimeSpan> {
        let (span, keep_alive) = (*length.get_ref(), group.connect.keep_alive);
        if span.0.is_zero() {
            return Err(self.error(length.span(), "a pause of 0 has no effect"));
        }
        if !keep_alive.0.is_zero() && span.0 >= keep_alive.0 {
            return Err(self
                .error(
                    length.span(),
                    "the pause is longer than the keep-alive: clients would miss PINGRESP",
                )
                .label(format!("the keep-alive of the group is {keep_alive}"))
                .help("give the group connect.keep_alive = 0, or a longer one"));
        }
        Ok(span)
    }
}
