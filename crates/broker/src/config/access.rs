//! Access control: the files that say who may connect and do what, and what follows a refusal.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{ConfigError, HttpBackends, JwtSettings, check_range};

/// As for certificates.
const CHECK_S: u32 = 10;

/// `[access]`. Without files all clients may do everything.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct AccessSettings {
    /// Password file: clients of listeners without one of their own log in with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password_file: Option<PathBuf>,
    /// Access list: what clients may publish, subscribe to and receive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acl_file: Option<PathBuf>,
    /// Rules file: the same in a format of our own, instead of an access list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rules_file: Option<PathBuf>,
    /// Bans: addresses, client identifiers and users that may not connect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ban_file: Option<PathBuf>,
    /// Audit log: a line of JSON for each refused login and each change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit_file: Option<PathBuf>,
    /// Size at which the audit log is renamed, and a new one begun.
    pub audit_bytes_max: u64,
    /// What follows a PUBLISH that is not allowed.
    pub on_deny: OnDeny,
    /// What follows when a connected client loses a subscription by new rules.
    pub on_revoked: OnRevoked,
    /// What becomes of the messages that wait for a session then.
    pub revoked_queue: RevokedQueue,
    /// Which subscriptions are granted.
    pub subscribe: SubscribeCheck,
    /// Which sessions of other users a client may take over.
    pub session_takeover: SessionTakeover,
    /// Seconds between two looks at the files; 0: they are read on SIGHUP only.
    pub check_s: u32,
    /// Threads that verify passwords; 0: half of the usable cores, from 1 to 4.
    pub login_threads: u32,
    /// Logins that wait for these threads; more are refused.
    pub logins_waiting_max: u32,
    /// Verified logins that are remembered, so that they need not be verified again.
    pub remembered_logins_max: u32,
    /// Seconds that they are remembered at least after their last use.
    pub remember_logins_s: u32,
    /// Failed logins of one address within the window below after which it is banned; 0: none.
    pub login_failures_max: u32,
    /// Seconds that a failed login counts at least, and twice that at most.
    pub login_failures_window_s: u32,
    /// Seconds that an address is banned.
    pub login_ban_s: u32,
    /// Milliseconds that the answer to the second failed login of one address within that window
    /// waits; it doubles with each further one. 0: none waits.
    pub login_delay_ms: u32,
    /// Milliseconds that such an answer waits at most.
    pub login_delay_max_ms: u32,
    /// Answers that wait at once; others are given at once, and do not say why.
    pub login_delays_max: u32,
    /// Connections of one address that end within the window below after which it is banned; 0:
    /// none.
    pub flapping_address_max: u32,
    /// The same of one client identifier.
    pub flapping_client_id_max: u32,
    /// Seconds that the end of a connection counts at least, and twice that at most.
    pub flapping_window_s: u32,
    /// Seconds that an address or a client identifier is banned for that.
    pub flapping_ban_s: u32,
    /// Clients log in with JSON Web Tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jwt: Option<JwtSettings>,
    /// Backends behind HTTP say whether clients may log in.
    #[serde(skip_serializing_if = "HttpBackends::is_empty")]
    pub http: HttpBackends,
}

/// What follows a PUBLISH that is not allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OnDeny {
    /// It is dropped, and answered with 0x87 where the protocol has an answer (5.0, QoS 1 and 2).
    #[default]
    Refuse,
    /// The client is disconnected (5.0: 0x87).
    Disconnect,
}

/// What follows when a connected client loses a subscription by new rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OnRevoked {
    /// The client is disconnected (5.0: 0x87): only that tells it.
    #[default]
    Disconnect,
    /// The subscription ends, and the client is not told.
    Silent,
}

/// What becomes of the messages that wait for a session that loses a subscription by new rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RevokedQueue {
    /// Those that the client may have are delivered.
    #[default]
    Keep,
    /// They are dropped; other members get those of shared subscriptions.
    Drop,
}

/// Which subscriptions are granted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SubscribeCheck {
    /// Those whose every topic the client may receive; others are refused with 0x87.
    #[default]
    Whole,
    /// All but shared ones, and the messages that the client may not receive are left out, as
    /// mosquitto does. Shared ones are granted as with `whole`.
    Filtered,
}

/// Which sessions of other users a client may take over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionTakeover {
    /// None.
    #[default]
    SameUser,
    /// Those of anonymous clients: for sessions from the time before there were users.
    FromAnonymous,
    /// All.
    AnyUser,
}

impl Default for AccessSettings {
    fn default() -> Self {
        Self {
            password_file: None,
            acl_file: None,
            rules_file: None,
            ban_file: None,
            audit_file: None,
            audit_bytes_max: 100 * 1024 * 1024,
            on_deny: OnDeny::default(),
            on_revoked: OnRevoked::default(),
            revoked_queue: RevokedQueue::default(),
            subscribe: SubscribeCheck::default(),
            session_takeover: SessionTakeover::default(),
            check_s: CHECK_S,
            login_threads: 0,
            logins_waiting_max: 1_000,
            remembered_logins_max: 100_000,
            remember_logins_s: 3_600,
            login_failures_max: 0,
            login_failures_window_s: 60,
            login_ban_s: 300,
            login_delay_ms: 0,
            login_delay_max_ms: 4_000,
            login_delays_max: 1_000,
            flapping_address_max: 0,
            flapping_client_id_max: 0,
            flapping_window_s: 60,
            flapping_ban_s: 300,
            jwt: None,
            http: HttpBackends::default(),
        }
    }
}

impl AccessSettings {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        if self.acl_file.is_some() && self.rules_file.is_some() {
            return Err(ConfigError::TwoAccessLists);
        }
        check_range("access.check_s", self.check_s.into(), 0, 86_400, "from 0 to 86400")?;
        let (min, expected) = (64 * 1024, "at least 65536");
        check_range(
            "access.audit_bytes_max",
            self.audit_bytes_max,
            min,
            i64::MAX as u64,
            expected,
        )?;
        check_range("access.login_threads", self.login_threads.into(), 0, 64, "from 0 to 64")?;
        let waiting = self.logins_waiting_max.into();
        check_range("access.logins_waiting_max", waiting, 1, 100_000, "from 1 to 100000")?;
        let remembered = self.remembered_logins_max.into();
        let (max, expected) = (10_000_000, "at most 10000000");
        check_range("access.remembered_logins_max", remembered, 0, max, expected)?;
        let (min, max, expected) = (1, 86_400, "from 1 to 86400");
        let window_s = self.login_failures_window_s.into();
        check_range("access.login_failures_window_s", window_s, min, max, expected)?;
        check_range("access.login_ban_s", self.login_ban_s.into(), min, max, expected)?;
        self.check_delays()?;
        let window_s = self.flapping_window_s.into();
        check_range("access.flapping_window_s", window_s, min, max, expected)?;
        check_range("access.flapping_ban_s", self.flapping_ban_s.into(), min, max, expected)?;
        self.jwt.as_ref().map_or(Ok(()), JwtSettings::check)?;
        self.http.check()
    }

    fn check_delays(&self) -> Result<(), ConfigError> {
        let (first_ms, max_ms) = (self.login_delay_ms.into(), self.login_delay_max_ms.into());
        check_range("access.login_delay_ms", first_ms, 0, 60_000, "from 0 to 60000")?;
        let expected = "from `login_delay_ms` to 60000";
        check_range("access.login_delay_max_ms", max_ms, first_ms, 60_000, expected)?;
        let waiting = self.login_delays_max.into();
        check_range("access.login_delays_max", waiting, 1, 100_000, "from 1 to 100000")
    }

    /// How long the answer to a failed login waits; lately its address has had so many, with this
    /// one.
    pub(crate) fn answer_delay_ns(&self, failures: u32) -> u64 {
        let Some(doublings) = failures.checked_sub(2) else { return 0 };
        let delay_ms = u64::from(self.login_delay_ms) << doublings.min(16);
        delay_ms.min(self.login_delay_max_ms.into()) * 1_000_000
    }

    /// Whether the clients of all listeners log in, with a password file of their own or without.
    pub(super) fn has_common_logins(&self) -> bool {
        self.jwt.is_some() || self.http.has_common()
    }

    /// How many threads verify passwords.
    pub(crate) fn threads(&self) -> usize {
        match self.login_threads {
            0 => {
                std::thread::available_parallelism().map_or(1, |cores| cores.get() / 2).clamp(1, 4)
            }
            threads => threads as usize,
        }
    }
}
