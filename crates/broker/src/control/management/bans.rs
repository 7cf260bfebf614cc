//! Bans: those of the file, those of operators, and those for offences.

use std::net::IpAddr;

use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::{BytesRejection, QueryRejection};
use axum::http::StatusCode;
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use tacho_access::BannedThing;
use tacho_http::{ApiError, body, json};
use tacho_net::clock;
use time::OffsetDateTime;

use super::Api;
use super::answers::query;
use super::gate::Caller;
use super::store::OperatorBan;
use crate::access::{AuditEvent, Name, Offence};

/// Bans of each kind in an answer.
const BANS_MAX: usize = 10_000;
const SECOND_NS: u64 = 1_000_000_000;

/// Where a ban comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum BanSource {
    /// The ban file: only an editor changes it.
    File,
    Operator,
    /// Too many failed logins.
    FailedLogins,
    /// It connected and left again and again.
    Flapping,
}

/// A ban in force.
#[derive(Serialize)]
struct BanRow {
    source: BanSource,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Absent: for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<String>,
}

/// The bans in force.
#[derive(Serialize)]
pub(super) struct BanList {
    bans: Vec<BanRow>,
    /// Client identifiers that are banned for flapping, which the broker knows by their hashes.
    flapping_client_ids: usize,
    /// Bans of operators outlive the broker.
    lasting: bool,
    /// There are more than are listed.
    cut: bool,
}

/// What an operator bans: one of the first three.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct BanRequest {
    address: Option<String>,
    client_id: Option<String>,
    user: Option<String>,
    reason: Option<String>,
    until: Option<String>,
    for_s: Option<u32>,
}

/// What is not to be banned any more: one of them.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct UnbanQuery {
    address: Option<String>,
    client_id: Option<String>,
    user: Option<String>,
}

/// A date and a time, in UTC.
fn date_of(unix_s: i64) -> Option<String> {
    let at = OffsetDateTime::from_unix_timestamp(unix_s).ok()?;
    let (year, month, day) = (at.year(), u8::from(at.month()), at.day());
    let (hour, minute, second) = (at.hour(), at.minute(), at.second());
    Some(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"))
}

fn unix_s() -> i64 {
    (clock::unix_ns() / SECOND_NS) as i64
}

pub(super) async fn list(State(api): State<Api>) -> Json<BanList> {
    let access = &api.broker().shared.access;
    let (now_ns, now_s) = (clock::now_ns(), unix_s());
    let policy = api.policy();
    let mut bans = Vec::new();
    let mut add = |source, (banned, what): (BannedThing, String), reason: Option<&str>, until| {
        let of = |thing| (banned == thing).then(|| what.clone());
        bans.push(BanRow {
            source,
            address: of(BannedThing::Address),
            client_id: of(BannedThing::ClientId),
            user: of(BannedThing::User),
            reason: reason.map(str::to_owned),
            until,
        });
    };
    let stored = api.broker().store.applied_bans();
    for (source, all) in [(BanSource::Operator, &*stored), (BanSource::File, policy.file_bans())] {
        let held = all.entries().filter(|entry| entry.ban.holds(now_s));
        for entry in held.take(BANS_MAX + 1) {
            let until = entry.ban.until_s().and_then(date_of);
            add(source, (entry.banned, entry.what.into_owned()), entry.ban.reason(), until);
        }
    }
    for (address, offence, ends_ns) in access.bans.addresses(now_ns, BANS_MAX) {
        let source = match offence {
            Offence::FailedLogins => BanSource::FailedLogins,
            Offence::AddressFlaps | Offence::ClientIdFlaps => BanSource::Flapping,
        };
        let left_s = (ends_ns.saturating_sub(now_ns) / SECOND_NS) as i64;
        let until = date_of(now_s + left_s);
        add(source, (BannedThing::Address, address.to_string()), Some(offence.sentence()), until);
    }
    let flapping = access.bans.banned().into_iter();
    let flapping = flapping.filter(|(offence, _)| *offence == Offence::ClientIdFlaps);
    let flapping_client_ids = flapping.map(|(_, count)| count).sum();
    let cut = bans.len() > BANS_MAX;
    bans.truncate(BANS_MAX);
    Json(BanList { bans, flapping_client_ids, lasting: api.broker().store.is_lasting(), cut })
}

pub(super) async fn ban(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    bytes: Result<Bytes, BytesRejection>,
) -> Result<StatusCode, ApiError> {
    let request: BanRequest = json(&body(bytes)?)?;
    let BanRequest { address, client_id, user, reason, until, for_s } = request;
    let until = match (until, for_s) {
        (Some(_), Some(_)) => {
            return Err(ApiError::about("until", "send either `until` or `for_s`"));
        }
        (until, None) => until,
        (None, Some(for_s)) => date_of(unix_s().saturating_add(for_s.into())),
    };
    let ban = OperatorBan { address, client_id, user, reason, until };
    let bans = api.broker().store.add_ban(ban.clone())?;
    api.broker().access.change_bans(bans);
    api.note(&caller, "ban", audited(&ban));
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn unban(
    State(api): State<Api>,
    Extension(caller): Extension<Caller>,
    parsed: Result<axum::extract::Query<UnbanQuery>, QueryRejection>,
) -> Result<StatusCode, ApiError> {
    let UnbanQuery { address, client_id, user } = query(parsed)?;
    let of = OperatorBan { address, client_id, user, ..OperatorBan::default() };
    let things = [&of.address, &of.client_id, &of.user];
    if things.into_iter().flatten().count() != 1 {
        let message = "name exactly one of `address`, `client_id` and `user`";
        return Err(ApiError::about("address", message));
    }
    let bans = api.broker().store.remove_ban(&of)?;
    let was_banned = bans.is_some();
    if let Some(bans) = bans {
        api.broker().access.change_bans(bans);
    }
    let offences = &api.broker().shared.access.bans;
    let address = of.address.as_deref().and_then(|text| text.parse::<IpAddr>().ok());
    let was_forgiven = address.is_some_and(|address| offences.forgive_address(address))
        || of.client_id.as_deref().is_some_and(|id| offences.forgive_client_id(id));
    if !was_banned && !was_forgiven {
        let message = "there is no such ban of an operator or for an offence; those of the ban \
                       file are changed there";
        return Err(ApiError::not_found(message));
    }
    api.note(&caller, "unban", audited(&of));
    Ok(StatusCode::NO_CONTENT)
}

fn audited(ban: &OperatorBan) -> AuditEvent {
    AuditEvent {
        client_id: ban.client_id.as_deref().map(Name::new),
        user: ban.user.as_deref().map(Name::new),
        why: ban.reason.clone(),
        // A range is no address of a client.
        banned_address: ban.address.as_deref().map(Name::new),
        ..AuditEvent::default()
    }
}
