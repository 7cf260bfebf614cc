//! From the file as typed to a scenario that can run, or the first reason why not.

mod action;
mod checker;
mod group;
mod life;
mod login;
mod payload;
mod publish;
mod tls;
mod token;

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use action::ActionContext;
pub(super) use checker::{Checked, Checker};
use group::Brokers;
use toml::Spanned;

use super::adjust::MEASURE_MIN;
use super::broker_url::BrokerUrl;
use super::error::{ScenarioError, closest};
use super::headline::HeadlineKind;
use super::limits::DESCRIPTORS_RESERVED;
use super::quantity::{TimeSpan, Whole};
use super::raw::{RawBridge, RawLoad, RawPhases, RawScenario, RawTarget};
use super::source_address::SourceAddresses;
use super::tls::TlsOptions;
use super::types::{Bridge, Group, LoadOptions, Phases, ProtocolVersion, Scenario, Target, Timing};
use super::vars::VarValue;
use crate::threshold::{Threshold, Thresholds};

impl Checker<'_> {
    pub(super) fn scenario(
        &self,
        raw: RawScenario,
        vars: BTreeMap<String, VarValue>,
    ) -> Checked<Scenario> {
        let name = raw.name.get_ref().trim().to_owned();
        if name.is_empty() || name.contains("{{") {
            return Err(self
                .error(raw.name.span(), "the scenario has no fixed name")
                .label("letters, digits, '-'"));
        }
        let groups_span = raw.groups.span();
        let machines = raw.machines.as_ref().map_or(Ok(1), |machines| {
            self.whole(machines, "the number of machines", 1, 1_000_000)
        })?;
        let machines = self.adjustment.machines.map_or(machines, u64::from);
        let machines = self.adjustment.count(machines) as u32;
        let target = self.target(&raw.target, None)?;
        let targets = self.targets(&raw.targets, &target)?;
        let brokers = Brokers { default: &target, named: &targets };
        let mut groups = BTreeMap::new();
        let mut largest: Option<(u32, Range<usize>)> = None;
        for (group_name, group) in raw.groups.into_inner() {
            let span = group.clients.span();
            let checked = self.group(group_name.get_ref(), group, machines, brokers)?;
            if largest.as_ref().is_none_or(|(clients, _)| *clients < checked.clients) {
                largest = Some((checked.clients, span));
            }
            groups.insert(group_name.into_inner(), checked);
        }
        let phases = self.phases(&raw.phases, &groups)?;
        let context = ActionContext { groups: &groups, targets: &targets, phases: &phases };
        let actions = self.actions(&raw.actions, context)?;
        let scenario = Scenario {
            name,
            description: raw.description,
            description_zh: raw.description_zh,
            seed: raw.seed.map_or(Ok(1), |seed| self.whole(&seed, "a seed", 0, i64::MAX as u64))?,
            machines,
            bridges: raw
                .bridges
                .iter()
                .map(|bridge| self.bridge(bridge, &targets))
                .collect::<Checked<_>>()?,
            headlines: self.headlines(&raw.headlines)?,
            vars,
            target,
            targets,
            load: self.load(&raw.load)?,
            phases,
            thresholds: self.thresholds(&raw.thresholds)?,
            actions,
            groups,
            notes: Vec::new(),
        };
        if scenario.clients() == 0 {
            return Err(self
                .error(groups_span, "the scenario has no clients")
                .help("set 'clients' of at least one group"));
        }
        scenario.check_tokens().map_err(|title| self.error(groups_span.clone(), title))?;
        self.descriptors(scenario.clients(), largest.map_or(groups_span, |(_, span)| span))?;
        Ok(scenario)
    }

    /// Every client needs a descriptor; an error points at the largest group.
    fn descriptors(&self, clients: u64, largest: Range<usize>) -> Checked<()> {
        let available = self.limits.descriptors_max;
        if clients + DESCRIPTORS_RESERVED <= available {
            return Ok(());
        }
        let room = available.saturating_sub(DESCRIPTORS_RESERVED);
        Err(self
            .error(
                largest,
                format!("{clients} clients need more open files than this system allows"),
            )
            .label(format!("at most {room} clients here"))
            .help(format!(
                "the hard limit is {available} ('ulimit -Hn'): raise it, or use fewer clients"
            )))
    }

    fn targets(
        &self,
        raw: &BTreeMap<Spanned<String>, RawTarget>,
        default: &Target,
    ) -> Checked<BTreeMap<String, Target>> {
        let checked = raw.iter().map(|(name, raw)| {
            let usable = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            let text = name.get_ref();
            if text.is_empty() || !text.chars().all(usable) {
                return Err(self
                    .error(name.span(), format!("'{text}' cannot be the name of a broker"))
                    .label("letters, digits, '-', '_', '.'"));
            }
            Ok((text.clone(), self.target(raw, Some(default))?))
        });
        checked.collect()
    }

    /// The name of a broker that there is.
    fn target_name(
        &self,
        name: &Spanned<String>,
        targets: &BTreeMap<String, Target>,
    ) -> Checked<String> {
        let text = name.get_ref();
        if targets.contains_key(text) {
            return Ok(text.clone());
        }
        let known = targets.keys().map(String::as_str);
        Err(self.unknown_name(name, ("broker", "targets"), known))
    }

    /// The error that no `what`, a table in `tables`, has this name.
    fn unknown_name<'k>(
        &self,
        name: &Spanned<String>,
        (what, tables): (&str, &str),
        known: impl Iterator<Item = &'k str>,
    ) -> ScenarioError {
        let text = name.get_ref();
        let error = self.error(name.span(), format!("there is no {what} '{text}'"));
        match closest(text, known) {
            Some(word) => error.label(format!("did you mean '{word}'?")),
            None => error.label(format!("no [{tables}.<name>] has this name")),
        }
    }

    fn bridge(&self, raw: &RawBridge, targets: &BTreeMap<String, Target>) -> Checked<Bridge> {
        let from = self.target_name(&raw.from, targets)?;
        let to = self.target_name(&raw.to, targets)?;
        if from == to {
            return Err(self
                .error(raw.to.span(), "a bridge leads to another broker")
                .label(format!("it comes from '{from}'")));
        }
        let filter = raw.filter.get_ref();
        if filter.is_empty() || !filter.starts_with(&raw.strip) {
            return Err(self
                .error(raw.filter.span(), "the filter does not start with the 'strip' prefix")
                .label(format!("strip = \"{}\"", raw.strip)));
        }
        let (strip, prefix) = (raw.strip.clone(), raw.prefix.clone());
        let connections = raw.connections.as_ref().map(|connections| {
            Ok(self.whole(connections, "the number of connections", 1, 1024)? as u16)
        });
        let connections = connections.transpose()?;
        Ok(Bridge { from, to, filter: filter.clone(), strip, prefix, connections })
    }

    /// A broker; a named one inherits unset keys from the default one.
    fn target(&self, raw: &RawTarget, default: Option<&Target>) -> Checked<Target> {
        let broker = raw.broker.as_ref().map(|broker| {
            BrokerUrl::parse(broker.get_ref()).map_err(|title| self.error(broker.span(), title))
        });
        let broker = broker.transpose()?;
        if let (Some(url), Some(tls)) = (&broker, &raw.tls)
            && !url.scheme.uses_tls()
        {
            let scheme = url.scheme.name();
            return Err(self
                .error(tls.span(), format!("TLS settings for a {scheme}:// broker"))
                .help("a broker with TLS is addressed as mqtts://host:port or wss://host:port"));
        }
        let takes_tls = broker.as_ref().is_none_or(|url| url.scheme.uses_tls());
        Ok(Target {
            broker,
            tls: match (&raw.tls, default) {
                (Some(tls), _) => self.tls(tls)?,
                (None, Some(default)) if takes_tls => default.tls.clone(),
                (None, _) => TlsOptions::default(),
            },
            kills: match &raw.kills {
                None => default.map_or(0, |target| target.kills),
                Some(kills) => self.whole(kills, "the number of kills", 0, 1000)? as u32,
            },
            version: match &raw.version {
                None => default.map_or_else(ProtocolVersion::default, |target| target.version),
                Some(version) => self.version(version)?,
            },
        })
    }

    fn version(&self, version: &Spanned<String>) -> Checked<ProtocolVersion> {
        match version.get_ref().as_str() {
            "3" | "3.1" => Ok(ProtocolVersion::V31),
            "4" | "3.1.1" => Ok(ProtocolVersion::V311),
            "5" | "5.0" => Ok(ProtocolVersion::V5),
            other => Err(self
                .error(version.span(), format!("there is no MQTT version '{other}'"))
                .label("\"3.1\", \"3.1.1\" or \"5\"")),
        }
    }

    fn load(&self, raw: &RawLoad) -> Checked<LoadOptions> {
        let threads = raw.threads.as_ref().map(|threads| {
            let what = "the number of generator threads";
            self.whole(threads, what, 1, 1024).map(|threads| threads as u16)
        });
        let timing = raw.timing.as_ref().map(|timing| match timing.get_ref().as_str() {
            "auto" => Ok(Timing::Auto),
            "sleep" => Ok(Timing::Sleep),
            "spin" => Ok(Timing::Spin),
            "batch" => Ok(Timing::Batch),
            _ => Err(self.choice(timing, "timing", "\"auto\", \"sleep\", \"spin\" or \"batch\"")),
        });
        let addresses = raw.source_addresses.as_ref().map(|list| {
            SourceAddresses::from_parts(list.get_ref().iter().map(String::as_str))
                .map_err(|title| self.error(list.span(), title))
        });
        Ok(LoadOptions {
            threads: threads.transpose()?,
            timing: timing.transpose()?.unwrap_or_default(),
            source_addresses: addresses.transpose()?.unwrap_or_default(),
        })
    }

    fn phases(&self, raw: &RawPhases, groups: &BTreeMap<String, Group>) -> Checked<Phases> {
        let span = |value: &Option<Spanned<TimeSpan>>, default| {
            value.as_ref().map_or_else(|| TimeSpan::from_secs(default), |value| *value.get_ref())
        };
        if let Some(measure) = &raw.measure
            && measure.get_ref().0 < MEASURE_MIN
        {
            return Err(self
                .error(measure.span(), "the measured phase is too short to measure anything")
                .label("at least 100ms; 30s and more give steady figures"));
        }
        if let (Some(messages), Some(_)) = (&raw.messages, &raw.measure) {
            return Err(self
                .error(messages.span(), "the measured phase ends by time or by number of messages")
                .label("'measure' is set too: remove one of them"));
        }
        let counted = raw.messages.as_ref().map(|messages| self.time_for(messages, groups));
        let counted = counted.transpose()?;
        Ok(Phases {
            connect_timeout: span(&raw.connect_timeout, 30),
            ready_probe: raw.ready_probe.unwrap_or(true),
            warmup: self.adjustment.warmup.unwrap_or_else(|| span(&raw.warmup, 5)),
            measure: self.adjustment.hold.or(counted).unwrap_or_else(|| span(&raw.measure, 30)),
            drain: span(&raw.drain, 5),
        })
    }

    /// The time that the slowest publisher needs for this number of messages.
    fn time_for(
        &self,
        messages: &Spanned<Whole>,
        groups: &BTreeMap<String, Group>,
    ) -> Checked<TimeSpan> {
        let count = self.whole(messages, "the number of messages", 1, 1_000_000_000)?;
        let rates = groups.values().filter(|group| group.clients > 0).flat_map(|group| {
            group.publish.iter().map(|publish| publish.model.per_client(group.clients))
        });
        let slowest = rates.map(|rate| rate.unwrap_or(0.0)).reduce(f64::min);
        let Some(rate) = slowest.filter(|rate| *rate > 0.0) else {
            return Err(self
                .error(messages.span(), "messages cannot be counted without a rate")
                .label("every publisher needs a 'rate'"));
        };
        let span = Duration::from_secs_f64(count as f64 / rate);
        if span < MEASURE_MIN {
            return Err(self
                .error(messages.span(), "the measured phase is too short to measure anything")
                .label("at least 100ms: more messages, or a lower rate"));
        }
        Ok(TimeSpan(span))
    }

    fn headlines(&self, raw: &[Spanned<String>]) -> Checked<Vec<HeadlineKind>> {
        let kind = |name: &Spanned<String>| {
            let known = HeadlineKind::ALL.map(|(name, _)| name);
            HeadlineKind::named(name.get_ref()).ok_or_else(|| {
                let title = format!("there is no headline '{}'", name.get_ref());
                let error = self.error(name.span(), title);
                let error = match closest(name.get_ref(), known) {
                    Some(word) => error.label(format!("did you mean '{word}'?")),
                    None => error,
                };
                error.help(format!("known: {}", known.join(", ")))
            })
        };
        raw.iter().map(kind).collect()
    }

    fn thresholds(&self, raw: &BTreeMap<Spanned<String>, Spanned<String>>) -> Checked<Thresholds> {
        let checked = raw.iter().map(|(name, condition)| {
            Threshold::from_parts(name.get_ref(), condition.get_ref())
                .map_err(|title| self.error(condition.span(), title))
        });
        Ok(Thresholds(checked.collect::<Checked<_>>()?))
    }
}
