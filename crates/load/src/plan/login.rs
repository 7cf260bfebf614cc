//! Logins: clients that connect and leave again and again, by a schedule.

use serde::{Deserialize, Serialize};

/// The clients of a group log in again and again during the load, and do nothing else. They do
/// not connect in [`Phase::Connect`](super::Phase::Connect).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Login {
    /// Logins of the whole group per second. The schedule is open: login `n` is due `n / per_s`
    /// after the start of the load, whatever became of those before. The clients take turns; a
    /// client whose last login has not ended begins late, and the delay counts as latency.
    pub per_s: f64,
    /// How long a client stays connected; 0 leaves at once.
    pub stay_ns: u64,
    /// Share of the logins with a wrong password, 0 to 1.
    pub wrong_share: f64,
    /// Share of the logins with a user name that the broker does not know, 0 to 1.
    pub unknown_share: f64,
}

/// What a login presents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, PartialOrd, Ord, Serialize, Deserialize)]
pub enum LoginKind {
    /// The credentials of the client: the broker must accept them.
    #[default]
    Right,
    /// A wrong password: the broker must refuse it.
    WrongPassword,
    /// The name of no user: the broker must refuse it.
    UnknownUser,
}

impl LoginKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Right, Self::WrongPassword, Self::UnknownUser];

    /// Whether the broker must accept it.
    pub const fn must_be_accepted(self) -> bool {
        matches!(self, Self::Right)
    }
}

impl Login {
    /// What is appended to a password to make it wrong, and to a user name to make it unknown.
    pub const WRONG_SUFFIX: &str = "-wrong";

    /// When login `number` of the group is due, from the start of the load.
    pub(crate) fn due_ns(&self, number: u64, factor: f64) -> u64 {
        (number as f64 * 1e9 / (self.per_s * factor)) as u64
    }

    /// What login `number` of the group presents. The kinds are mixed evenly over any stretch of
    /// time and over the clients: the multiples of the golden ratio fill the range from 0 to 1 so.
    pub fn kind(&self, number: u64) -> LoginKind {
        const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
        let place = (number.wrapping_mul(GOLDEN) >> 11) as f64 / (1_u64 << 53) as f64;
        if place < self.wrong_share {
            LoginKind::WrongPassword
        } else if place < self.wrong_share + self.unknown_share {
            LoginKind::UnknownUser
        } else {
            LoginKind::Right
        }
    }

    /// Checks the values.
    pub(super) fn check(&self) -> Result<(), &'static str> {
        let is_share = |share: f64| (0.0..=1.0).contains(&share);
        if !(self.per_s.is_finite() && self.per_s > 0.0) {
            Err("the rate of logins must be a positive number")
        } else if !is_share(self.wrong_share)
            || !is_share(self.unknown_share)
            || self.wrong_share + self.unknown_share > 1.0
        {
            Err("the shares of wrong passwords and unknown users must lie between 0 and 1 together")
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIXED: Login = Login { per_s: 100.0, stay_ns: 0, wrong_share: 0.1, unknown_share: 0.05 };

    #[test]
    fn kinds_have_their_shares_in_any_stretch() {
        let count = |from: u64, kind| {
            (from..from + 1000).filter(|number| MIXED.kind(*number) == kind).count()
        };
        for from in [0, 777, 1 << 40] {
            let counts = LoginKind::ALL.map(|kind| count(from, kind));
            assert!(counts[0].abs_diff(850) < 5, "{counts:?}");
            assert!(counts[1].abs_diff(100) < 5, "{counts:?}");
            assert!(counts[2].abs_diff(50) < 5, "{counts:?}");
        }
        // A client of ten has every tenth login: it presents all kinds, too.
        let own = (0..1000).map(|turn| MIXED.kind(turn * 10 + 3));
        assert!(own.filter(|kind| *kind == LoginKind::WrongPassword).count().abs_diff(100) < 5);
    }

    #[test]
    fn impossible_values_are_refused() {
        assert_eq!(MIXED.check(), Ok(()));
        for (per_s, wrong_share, unknown_share) in
            [(0.0, 0.0, 0.0), (f64::NAN, 0.0, 0.0), (1.0, 0.6, 0.5), (1.0, -0.1, 0.0)]
        {
            assert!(Login { per_s, wrong_share, unknown_share, ..MIXED }.check().is_err());
        }
        assert!(MIXED.due_ns(250, 1.0) == 2_500_000_000 && MIXED.due_ns(250, 2.0) == 1_250_000_000);
    }
}
