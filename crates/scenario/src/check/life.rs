//! How clients subscribe, live and leave, checked.

use std::collections::HashSet;
use std::path::PathBuf;

use tacho_load::plan::check_text;
use toml::Spanned;

use super::checker::{Checked, Checker};
use crate::data::Table;
use crate::life::{DeclaredLoss, Disconnect, Offline, Reconnect, Will};
use crate::quantity::{TimeSpan, Whole};
use crate::raw::{RawDisconnect, RawGroup, RawOffline, RawReconnect, RawSubscribe, RawWill};
use crate::rows::Rows;
use crate::template::{ClientPlace, Template};
use crate::types::{ProtocolVersion, Subscribe};

/// The columns of a credentials table.
const CREDENTIALS: [&str; 3] = ["client_id", "username", "password"];

/// Largest payload of a will: MQTT counts it with two bytes.
const WILL_BYTES_MAX: usize = 65_535;

impl Checker<'_> {
    pub(super) fn subscribe(
        &self,
        raw: &RawSubscribe,
        version: ProtocolVersion,
    ) -> Checked<Subscribe> {
        let options = [
            ("no_local", raw.no_local.as_ref().map(Spanned::span)),
            ("retain_handling", raw.retain_handling.as_ref().map(Spanned::span)),
        ];
        if let (true, Some((key, Some(span)))) =
            (version != ProtocolVersion::V5, options.into_iter().find(|(_, span)| span.is_some()))
        {
            return Err(self
                .error(span, format!("'{key}' requires MQTT 5"))
                .label("the clients use an older version"));
        }
        let plain = self.topic(&raw.filter, "filter")?;
        let filter = match &raw.share {
            None => plain,
            Some(share) if raw.filter.get_ref().starts_with("$share/") => {
                return Err(self
                    .error(share.span(), "the filter already names a shared group")
                    .label("remove 'share', or '$share/...' from the filter"));
            }
            Some(share)
                if share.get_ref().is_empty() || share.get_ref().contains(['/', '+', '#']) =>
            {
                return Err(self
                    .error(share.span(), "a shared group needs a name without '/', '+' and '#'"));
            }
            Some(share) => {
                self.text(share, "name of a shared group")?;
                let text = format!("$share/{}/{}", share.get_ref(), raw.filter.get_ref());
                Template::parse(&text).map_err(|title| self.error(share.span(), title))?
            }
        };
        let no_local = raw.no_local.as_ref().is_some_and(|flag| *flag.get_ref());
        if let Some(flag) = raw.no_local.as_ref().filter(|_| no_local)
            && filter.expand(0).starts_with("$share/")
        {
            return Err(self
                .error(flag.span(), "MQTT forbids no_local with a shared subscription")
                .label("remove it"));
        }
        Ok(Subscribe {
            filter,
            qos: raw.qos.as_ref().map_or(Ok(2), |qos| self.qos(qos))?,
            no_local,
            retain_handling: raw.retain_handling.as_ref().map_or(Ok(0), |value| {
                self.whole(value, "retain_handling", 0, 2).map(|value| value as u8)
            })?,
        })
    }

    /// How the table of credentials is read.
    pub(super) fn rows(&self, group: &RawGroup) -> Checked<Rows> {
        let Some(raw) = &group.rows else { return Ok(Rows::default()) };
        if group.credentials.is_none() {
            return Err(self.error(raw.span(), "'rows' needs 'credentials'").label("remove it"));
        }
        let raw = raw.get_ref();
        let whole = |value: &Option<Spanned<Whole>>, what, max, default| {
            value.as_ref().map_or(Ok(default), |value| self.whole(value, what, 0, max))
        };
        let default = Rows::default();
        let columns = match &raw.columns {
            Some(columns) if columns.get_ref().is_empty() => {
                return Err(self.error(columns.span(), "the table has no columns"));
            }
            Some(columns) => columns.get_ref().clone(),
            None => default.columns,
        };
        if let (Some(skip), true) = (&raw.skip, columns.is_empty()) {
            return Err(self
                .error(skip.span(), "the first line of the file holds the column names")
                .label("'skip' needs 'columns'"));
        }
        let delimiter = match &raw.delimiter {
            None => default.delimiter,
            Some(text) => match text.get_ref().as_bytes() {
                [byte] if byte.is_ascii() && !b"\"\r\n".contains(byte) => *byte,
                _ => return Err(self.error(text.span(), "a delimiter is one ASCII character")),
            },
        };
        let most = u64::from(u32::MAX);
        let per_machine = raw.per_machine.as_ref();
        Ok(Rows {
            columns,
            delimiter,
            skip: whole(&raw.skip, "a number of lines", most, 0)? as u32,
            first: whole(&raw.first, "the first row", most, default.first)?,
            every: whole(&raw.every, "a number of rows", most, default.every)?,
            per_machine: per_machine
                .map(|rows| self.whole(rows, "a number of rows", 0, most))
                .transpose()?,
            recycle: raw.recycle,
        })
    }

    /// A table with a row for each of `clients` clients on each of the machines.
    pub(super) fn credentials(
        &self,
        file: &Spanned<PathBuf>,
        how: &Rows,
        (clients, machines): (u64, u32),
    ) -> Checked<Table> {
        let table = self.table(file, how)?;
        if !CREDENTIALS.iter().any(|name| table.column(name).is_some()) {
            return Err(self
                .error(file.span(), "this table has no column that describes clients")
                .label(format!("its columns: {}", table.columns.join(", ")))
                .help(format!("known columns: {}", CREDENTIALS.join(", "))));
        }
        let rows = table.rows.len() as u64;
        let row_of = |client: u64| how.row_for(ClientPlace::new(client, machines), rows);
        if let Some(last) = (0..clients).map(row_of).max().filter(|last| *last >= rows) {
            let needed = last.saturating_add(1);
            let title = match how.is_default() {
                true => format!("{clients} clients need a row each, there are {rows}"),
                false => format!("{clients} clients need {needed} rows, there are {rows}"),
            };
            return Err(self.error(file.span(), title).label(format!("{} too few", needed - rows)));
        }
        for (column, what) in [("client_id", "client id"), ("username", "user name")] {
            for row in (0..clients).map(row_of) {
                if let Err(why) = check_text(table.cell(row, column).unwrap_or_default()) {
                    let title = format!("the {what} in row {} cannot be sent: {why}", row + 1);
                    return Err(self.error(file.span(), title).label("not allowed in MQTT"));
                }
            }
        }
        let mut seen = HashSet::new();
        let ids = (0..clients).filter_map(|client| table.cell(row_of(client), "client_id"));
        if let Some(twice) = ids.into_iter().find(|id| !seen.insert(*id)) {
            let title = format!("two clients have the client id '{twice}' in this table");
            return Err(self.error(file.span(), title));
        }
        Ok(table)
    }

    pub(super) fn disconnect(&self, raw: &RawDisconnect) -> Checked<Disconnect> {
        if let (Some(rate), Some(_)) = (&raw.rate, &raw.ramp) {
            return Err(self
                .error(rate.span(), "a group disconnects by 'rate' or by 'ramp', not by both")
                .label("remove one of them"));
        }
        if let Some(rate) = raw
            .rate
            .as_ref()
            .filter(|rate| !(rate.get_ref().0.is_normal() && rate.get_ref().0 > 0.0))
        {
            return Err(self.error(rate.span(), "at a rate of 0 no client would disconnect"));
        }
        Ok(Disconnect {
            rate: raw.rate.as_ref().map(|rate| *rate.get_ref()),
            ramp: raw.ramp.as_ref().map(|ramp| *ramp.get_ref()),
        })
    }

    pub(super) fn will(&self, raw: &RawWill) -> Checked<Will> {
        if raw.payload.len() > WILL_BYTES_MAX {
            let title = format!("a will of {} bytes is too large", raw.payload.len());
            return Err(self.error(raw.topic.span(), title).label("at most 65535"));
        }
        Ok(Will {
            topic: self.topic(&raw.topic, "topic")?,
            payload: raw.payload.clone(),
            qos: raw.qos.as_ref().map_or(Ok(0), |qos| self.qos(qos))?,
            retain: raw.retain,
            delay: raw.delay.unwrap_or_default(),
        })
    }

    pub(super) fn offline(&self, raw: &RawOffline) -> Checked<Offline> {
        let length = *raw.length.get_ref();
        if length.0.is_zero() {
            return Err(self.error(raw.length.span(), "an absence of 0 has no effect"));
        }
        Ok(Offline {
            after: raw.after,
            length,
            clean: raw.clean.unwrap_or(true),
            queues_qos0: raw.queues_qos0,
        })
    }

    pub(super) fn absent(&self, group: &RawGroup) -> Checked<bool> {
        let Some(absent) = group.absent.as_ref().filter(|absent| *absent.get_ref()) else {
            return Ok(false);
        };
        if group.offline.is_some() {
            return Err(self
                .error(absent.span(), "'absent' and 'offline' exclude each other")
                .label("remove one of them"));
        }
        Ok(true)
    }

    pub(super) fn reconnect(&self, raw: &RawReconnect) -> Checked<Reconnect> {
        let span = |value: &Option<Spanned<TimeSpan>>, default: &str| match value {
            Some(value) => Ok(*value.get_ref()),
            None => {
                TimeSpan::parse(default).map_err(|title| self.error(raw.attempts.span(), title))
            }
        };
        let (first, longest) = (span(&raw.first, "100ms")?, span(&raw.longest, "10s")?);
        if let Some(value) = raw.longest.as_ref().or(raw.first.as_ref()).filter(|_| longest < first)
        {
            return Err(self
                .error(value.span(), "the longest pause is shorter than the first")
                .label(format!("{first} is the first, {longest} the longest")));
        }
        let attempts = self.whole(&raw.attempts, "the number of attempts", 1, u32::MAX.into())?;
        Ok(Reconnect { attempts: attempts as u32, first, longest })
    }

    pub(super) fn losses(&self, raw: &Spanned<String>) -> Checked<DeclaredLoss> {
        match raw.get_ref().as_str() {
            "offline_queue_full" => Ok(DeclaredLoss::OfflineQueueFull),
            _ => Err(self.choice(raw, "losses", "\"offline_queue_full\"")),
        }
    }
}
