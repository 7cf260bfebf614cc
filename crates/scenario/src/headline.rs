//! Which figures a scenario is for.

use serde::Serialize;

/// Figures at the top of the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HeadlineKind {
    /// How soon disconnected clients are connected again.
    Recovery,
    /// Time until a second connection is served, and whether the first one gets the reason.
    Takeover,
    /// Connections per second, and the latency of the clients that stay.
    Churn,
    /// How soon new subscribers have all retained messages.
    Retained,
    /// How soon all wills have come.
    Wills,
    /// Latency of unaffected clients before, during and after pauses of others.
    Isolation,
    /// Broker CPU per message before and after the first action.
    Cost,
    /// Time from a request to its answer.
    RoundTrip,
    /// How latency and memory of the broker change per hour.
    Drift,
    /// The slowest group of clients.
    Groups,
    /// Logins per second, and the time that decisions take.
    Logins,
    /// Time until a killed broker serves again and bridges have delivered their backlog.
    Restart,
}

impl HeadlineKind {
    /// All of them, by the names that files use.
    pub const ALL: [(&'static str, Self); 12] = [
        ("recovery", Self::Recovery),
        ("takeover", Self::Takeover),
        ("churn", Self::Churn),
        ("retained", Self::Retained),
        ("wills", Self::Wills),
        ("isolation", Self::Isolation),
        ("cost", Self::Cost),
        ("round-trip", Self::RoundTrip),
        ("drift", Self::Drift),
        ("groups", Self::Groups),
        ("restart", Self::Restart),
        ("logins", Self::Logins),
    ];

    /// The one that files call so.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
    }
}
