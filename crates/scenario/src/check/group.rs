//! Groups of clients and how they connect, checked.

use std::collections::BTreeMap;

use toml::Spanned;

use super::checker::{Checked, Checker};
use crate::data::Table;
use crate::limits::PACKET_BYTES_MAX;
use crate::password::Password;
use crate::quantity::{TimeSpan, Whole};
use crate::raw::{RawConnect, RawGroup};
use crate::template::Template;
use crate::types::{Connect, Group, ProtocolVersion, Target};

/// The brokers that a group can connect to.
#[derive(Clone, Copy)]
pub(super) struct Brokers<'a> {
    pub(super) default: &'a Target,
    pub(super) named: &'a BTreeMap<String, Target>,
}

impl Checker<'_> {
    pub(super) fn group(
        &self,
        name: &str,
        raw: RawGroup,
        machines: u32,
        brokers: Brokers<'_>,
    ) -> Checked<Group> {
        let clients = self.whole(&raw.clients, "the number of clients", 0, i32::MAX as u64)?;
        let clients = self.adjustment.count(clients);
        if let Some(target) = &raw.target {
            self.target_name(target, brokers.named)?;
        }
        let client_id = self.client_id(name, &raw)?;
        let rows = self.rows(&raw)?;
        let credentials = raw
            .credentials
            .as_ref()
            .map(|file| self.credentials(file, &rows, (clients, machines)))
            .transpose()?;
        self.unique_client_ids(&raw, &client_id, credentials.as_ref(), (clients, machines))?;
        let version = raw.version.as_ref().map(|version| self.version(version)).transpose()?;
        let named = raw.target.as_ref().and_then(|name| brokers.named.get(name.get_ref()));
        let spoken = version.unwrap_or_else(|| named.unwrap_or(brokers.default).version);
        let publish = raw.publish.iter().map(|publish| self.publish(publish, spoken));
        let subscribe = raw.subscribe.iter().map(|subscribe| self.subscribe(subscribe, spoken));
        let answers = self.answers(&raw, spoken)?;
        let whole = |value: &Option<Spanned<Whole>>, what, max, default| {
            value.as_ref().map_or(Ok(default), |value| self.whole(value, what, 1, max))
        };
        let absent = self.absent(&raw)?;
        let login = raw.login.as_ref().map(|login| self.login(login, &raw)).transpose()?;
        Ok(Group {
            clients: clients as u32,
            client_id,
            target: raw.target.map(Spanned::into_inner),
            version,
            credentials,
            rows,
            losses: raw.losses.as_ref().map(|losses| self.losses(losses)).transpose()?,
            disconnect: self.disconnect(&raw.disconnect)?,
            will: raw.will.as_ref().map(|will| self.will(will)).transpose()?,
            absent,
            answers,
            offline: raw.offline.as_ref().map(|offline| self.offline(offline)).transpose()?,
            login,
            reconnect: raw.reconnect.as_ref().map(|raw| self.reconnect(raw)).transpose()?,
            inflight: whole(&raw.inflight, "an inflight window", 65_535, 65_535)? as u16,
            waiting: whole(&raw.waiting, "a waiting queue", u64::from(u32::MAX), 10_000)? as u32,
            connect: self.connect(&raw.connect)?,
            publish: publish.collect::<Checked<_>>()?,
            subscribe: subscribe.collect::<Checked<_>>()?,
        })
    }

    fn client_id(&self, name: &str, raw: &RawGroup) -> Checked<Template> {
        match &raw.client_id {
            Some(text) => self.text(text, "client id"),
            None => Template::parse(&format!("{name}_{{{{machine}}}}_{{{{i}}}}"))
                .map_err(|title| self.error(raw.clients.span(), title)),
        }
    }

    /// Refuses a template of client identifiers that gives two clients the same one.
    fn unique_client_ids(
        &self,
        raw: &RawGroup,
        client_id: &Template,
        credentials: Option<&Table>,
        (clients, machines): (u64, u32),
    ) -> Checked<()> {
        let from_table = credentials.is_some_and(|table| table.column("client_id").is_some());
        match &raw.client_id {
            Some(text) if !from_table && !client_id.is_unique(clients, machines) => Err(self
                .error(text.span(), "clients of this group would have the same client id")
                .label(match machines {
                    1 => "put {{i}}, the client's number, into it",
                    _ => "put {{client}}, or {{machine}} and {{i}}, into it",
                })),
            _ => Ok(()),
        }
    }

    fn answers(&self, raw: &RawGroup, spoken: ProtocolVersion) -> Checked<bool> {
        match &raw.answers {
            Some(answers)
                if *answers.get_ref()
                    && (spoken != ProtocolVersion::V5 || raw.subscribe.is_empty()) =>
            {
                Err(self.error(
                    answers.span(),
                    "clients that answer must use MQTT 5 and subscribe to requests",
                ))
            }
            answers => Ok(answers.as_ref().is_some_and(|answers| *answers.get_ref())),
        }
    }

    fn connect(&self, raw: &RawConnect) -> Checked<Connect> {
        if let (Some(rate), Some(_)) = (&raw.rate, &raw.ramp) {
            return Err(self
                .error(rate.span(), "a group connects by 'rate' or by 'ramp', not by both")
                .label("remove one of them"));
        }
        if let Some(rate) =
            raw.rate.as_ref().filter(|rate| !rate.get_ref().0.is_normal() || rate.get_ref().0 < 0.0)
        {
            return Err(self.error(rate.span(), "at a rate of 0 no client would connect"));
        }
        let span = |value: &Option<Spanned<TimeSpan>>, default| {
            value.as_ref().map_or_else(|| TimeSpan::from_secs(default), |value| *value.get_ref())
        };
        let keep_alive = span(&raw.keep_alive, 300);
        if let Some(value) = raw.keep_alive.as_ref().filter(|_| keep_alive.0.as_secs() > 65_535) {
            return Err(self.error(value.span(), "a keep-alive is at most 65535 seconds"));
        }
        let packet_size = raw.maximum_packet_size.as_ref().map(|size| {
            let what = "the maximum packet size";
            self.whole(size, what, 1, PACKET_BYTES_MAX).map(|size| size as u32)
        });
        let ramp =
            self.adjustment.ramp_up.or_else(|| raw.ramp.as_ref().map(|ramp| *ramp.get_ref()));
        let rate = raw.rate.as_ref().map(|rate| *rate.get_ref());
        let rate = rate.filter(|_| self.adjustment.ramp_up.is_none());
        Ok(Connect {
            ramp: ramp.or_else(|| rate.is_none().then(|| TimeSpan::from_secs(2))),
            rate,
            clean_start: raw.clean_start.unwrap_or(true),
            session_expiry: span(&raw.session_expiry, 0),
            keep_alive,
            maximum_packet_size: packet_size.transpose()?,
            username: raw.username.as_ref().map(|name| self.text(name, "user name")).transpose()?,
            password: self.password(raw)?,
            scram: self.scram(raw)?,
            token: self.token(raw)?,
        })
    }

    fn password(&self, raw: &RawConnect) -> Checked<Option<Password>> {
        match (&raw.password, &raw.password_file, &raw.password_env) {
            (None, None, None) => Ok(None),
            (Some(text), None, None) => Ok(Some(Password::template(self.template(text)?))),
            (None, Some(file), None) => Password::read(&self.source.path(file.get_ref()))
                .map(Some)
                .map_err(|title| self.error(file.span(), title)),
            (None, None, Some(variable)) => Ok(Some(Password::in_environment(variable.get_ref()))),
            (text, file, variable) => {
                let spans = [
                    text.as_ref().map(Spanned::span),
                    file.as_ref().map(Spanned::span),
                    variable.as_ref().map(Spanned::span),
                ];
                let span = spans.into_iter().flatten().next().unwrap_or_default();
                Err(self
                    .error(span, "a password comes from one place")
                    .label("remove all but one of 'password', 'password_file', 'password_env'"))
            }
        }
    }
}
