//! Logins that the broker decided wrongly.

use super::{Evidence, Found};
use tacho_record::{LoginKind, Observation, Severity};

/// The reason code of a ban, as records name it.
const BANNED: &str = "banned (0x8A)";

/// The broker accepted wrong credentials, or refused right ones.
pub(super) fn misjudged(evidence: &Evidence<'_>) -> Found {
    let logins = evidence.step.logins.as_deref().filter(|logins| logins.misjudged > 0)?;
    Some(("logins_misjudged", Severity::Error, logins.misjudged_observation()))
}

/// The broker has banned the generator's address, usually for the wrong logins of the same run.
pub(super) fn banned(evidence: &Evidence<'_>) -> Found {
    let right = evidence.step.logins.as_deref()?.of(LoginKind::Right)?;
    let count = *right.reasons.get(BANNED)?;
    Some(("logins_banned", Severity::Warning, Observation::LoginsBanned { count }))
}
