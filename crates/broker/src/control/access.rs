//! Metrics of access control outside of the shards: its files and the audit log.

use std::fmt::Display;

use super::exposition::{Exposition, Kind};
use crate::access::{
    AccessControl, AuditOutcome, BackendHealth, BackendResult, NamedHealth, Offence,
};
use crate::certificates::Certificates;

pub(super) fn write(exposition: &mut Exposition, access: &AccessControl) {
    let name = "tacho_access_files_unusable";
    let help = "1 while users and access rules differ from their files, which cannot be used.";
    let value = u8::from(access.is_unusable());
    exposition.family(name, help, Kind::Gauge).sample(&[], value);
    let name = "tacho_access_reload_failures_total";
    let help = "Times that files of users and access rules could not be used.";
    exposition.family(name, help, Kind::Counter).sample(&[], access.failures());
    let name = "tacho_audit_events_total";
    let help = "Events for the audit log, by what became of them.";
    let mut events = exposition.family(name, help, Kind::Counter);
    for (outcome, label) in AuditOutcome::ALL {
        events.sample(&[("outcome", &label)], access.audit().count(outcome));
    }
    write_bans(exposition, access);
}

fn write_bans(exposition: &mut Exposition, access: &AccessControl) {
    let (banned, totals) = (access.bans().banned(), access.bans().totals());
    let [(_, for_logins), (_, for_flaps), (_, client_ids)] = banned;
    let name = "tacho_banned_addresses";
    let help = "Addresses that are banned for failed logins or for flapping.";
    exposition.family(name, help, Kind::Gauge).sample(&[], for_logins + for_flaps);
    let name = "tacho_banned_client_ids";
    let help = "Client identifiers that are banned for flapping.";
    exposition.family(name, help, Kind::Gauge).sample(&[], client_ids);
    for (offence, total) in totals {
        let (name, help) = match offence {
            Offence::FailedLogins => {
                ("tacho_bans_total", "Times that an address was banned for failed logins.")
            }
            Offence::AddressFlaps => {
                ("tacho_flapping_bans_total", "Times that an address was banned for flapping.")
            }
            Offence::ClientIdFlaps => (
                "tacho_flapping_client_id_bans_total",
                "Times that a client identifier was banned for flapping.",
            ),
        };
        exposition.family(name, help, Kind::Counter).sample(&[], total);
    }
}

/// Of keys of tokens that are fetched, where they are.
pub(super) fn write_keys(exposition: &mut Exposition, access: &AccessControl, now_ns: u64) {
    let fetches = access.key_fetches();
    let name = "tacho_token_keys_age_seconds";
    let help = "Time since the keys of tokens were fetched; absent until they were once.";
    let mut age = exposition.family(name, help, Kind::Gauge);
    if let Some(age_ns) = fetches.age_ns(now_ns) {
        age.sample(&[], age_ns / 1_000_000_000);
    }
    let name = "tacho_token_key_fetches_total";
    let help = "Requests for the keys of tokens.";
    exposition.family(name, help, Kind::Counter).sample(&[], fetches.total());
    let name = "tacho_token_key_fetch_failures_total";
    let help = "Requests for the keys of tokens that brought none that can be used.";
    exposition.family(name, help, Kind::Counter).sample(&[], fetches.failures());
}

/// Of the backends of logins; the name of one is a label, if it has one.
pub(super) fn write_backends(exposition: &mut Exposition, backends: &[NamedHealth]) {
    let name = "tacho_login_backend_condition";
    let help = "The backend of logins: 0 fine, 1 the last request failed, 2 not asked for a while.";
    let mut conditions = exposition.family(name, help, Kind::Gauge);
    each(backends, |label, health| conditions.sample(label, health.condition()));
    let name = "tacho_login_backend_requests_total";
    let help = "Logins that the backend was asked about, by what it answered.";
    let mut requests = exposition.family(name, help, Kind::Counter);
    each(backends, |label, health| {
        for (result, shown) in BackendResult::ALL {
            let result_label: (&str, &dyn Display) = ("result", &shown);
            let labels: Vec<_> = label.iter().copied().chain([result_label]).collect();
            requests.sample(&labels, health.count(result));
        }
    });
    let name = "tacho_login_backend_retries_total";
    let help = "Requests to the backend of logins that were repeated, since they got no answer.";
    let mut retries = exposition.family(name, help, Kind::Counter);
    each(backends, |label, health| retries.sample(label, health.retries()));
    let name = "tacho_login_backend_skipped_total";
    let help = "Logins that the backend was not asked about, since it had not answered others.";
    let mut skips = exposition.family(name, help, Kind::Counter);
    each(backends, |label, health| skips.sample(label, health.skips()));
    let name = "tacho_login_backend_waiting";
    let help = "Logins that wait for a connection to the backend.";
    let mut waiting = exposition.family(name, help, Kind::Gauge);
    each(backends, |label, health| waiting.sample(label, health.waiting()));
    let name = "tacho_login_backend_seconds";
    let help = "Time that the backend of logins has taken, with repetitions of the request.";
    let mut family = exposition.family(name, help, Kind::Histogram);
    each(backends, |label, health| {
        let (bounds, buckets, sum) = health.times();
        family.histogram(label, &bounds, &buckets, sum, Some(1e-9));
    });
}

/// Labels of a sample.
type Labels<'a> = [(&'a str, &'a dyn Display)];

fn each(backends: &[NamedHealth], mut write: impl FnMut(&Labels<'_>, &BackendHealth)) {
    for NamedHealth { name, health } in backends {
        match name {
            Some(name) => write(&[("backend", name)], health),
            None => write(&[], health),
        }
    }
}

/// Of the listeners' certificates, where there are any.
pub(super) fn write_certificates(exposition: &mut Exposition, certificates: Option<&Certificates>) {
    let name = "tacho_certificate_reload_failures_total";
    let help = "Times that certificates, CAs or revocation lists of a listener could not be used.";
    let failures = certificates.map_or(0, Certificates::failures);
    exposition.family(name, help, Kind::Counter).sample(&[], failures);
}
