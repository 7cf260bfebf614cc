//! Users and roles, as the files have them: read-only here.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use serde::{Deserialize, Serialize};
use tacho_access::AccessList;
use tacho_http::ApiError;

use super::Api;
use super::answers::{query, rows};

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct UsersQuery {
    limit: Option<usize>,
    /// The last user of the page before.
    cursor: Option<String>,
}

/// A user of a password file.
#[derive(Serialize)]
struct UserRow {
    user: String,
    /// The listeners that it can log in at.
    listeners: Vec<String>,
    roles: Vec<String>,
}

/// Some users.
#[derive(Serialize)]
pub(super) struct UserPage {
    users: Vec<UserRow>,
    /// Files are changed by an editor, or by `tacho passwd`.
    read_only: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// A role of the rules file.
#[derive(Serialize)]
struct RoleRow {
    role: String,
}

/// All roles.
#[derive(Serialize)]
pub(super) struct RoleList {
    roles: Vec<RoleRow>,
    read_only: bool,
}

pub(super) async fn users(
    State(api): State<Api>,
    parsed: Result<Query<UsersQuery>, QueryRejection>,
) -> Result<Json<UserPage>, ApiError> {
    let UsersQuery { limit, cursor } = query(parsed)?;
    let limit = rows(limit)?;
    let policy = api.policy();
    // The first ones behind the cursor: no more are kept than are shown.
    let mut first: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (number, listener) in api.broker().config.listeners.iter().enumerate() {
        let Some(users) = policy.users(number as u16) else { continue };
        let behind = |name: &&str| cursor.as_deref().is_none_or(|cursor| *name > cursor);
        for name in users.names().filter(behind) {
            let is_first = first.len() <= limit
                || first.last_key_value().is_some_and(|(last, _)| name <= *last);
            if is_first {
                first.entry(name).or_default().push(listener.to_string());
                if first.len() > limit + 1 {
                    first.pop_last();
                }
            }
        }
    }
    let has_more = first.len() > limit;
    let rules = match policy.list() {
        Some(AccessList::Rules(rules)) => Some(rules),
        _ => None,
    };
    let row = |(name, listeners): (&str, Vec<String>)| {
        let roles = rules.into_iter().flat_map(|rules| rules.roles(Some(name)));
        UserRow { user: name.to_owned(), listeners, roles: roles.map(str::to_owned).collect() }
    };
    let users: Vec<UserRow> = first.into_iter().take(limit).map(row).collect();
    let next = users.last().filter(|_| has_more).map(|last| last.user.clone());
    Ok(Json(UserPage { users, read_only: true, next }))
}

pub(super) async fn roles(State(api): State<Api>) -> Json<RoleList> {
    let policy = api.policy();
    let roles = match policy.list() {
        Some(AccessList::Rules(rules)) => {
            rules.role_names().map(|role| RoleRow { role: role.to_owned() }).collect()
        }
        _ => Vec::new(),
    };
    Json(RoleList { roles, read_only: true })
}
