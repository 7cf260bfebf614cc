//! Figures of logins.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tacho_codec::ReasonCode;

use super::failure::{Failure, is_temporary};
use crate::histogram::{Histogram, add, histogram, record};
use crate::plan::{ClientIndex, LoginKind};

/// The logins of a measured window.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct LoginTotals {
    /// Logins that ended inside the window, whenever they were due.
    pub ended: LoginCounts,
    /// By what was presented, in the order of [`LoginKind::ALL`].
    pub kinds: [LoginFigures; 3],
    /// The first login that the broker decided wrongly.
    pub first_misjudged: Option<JudgedLogin>,
    /// The first login that had no decision.
    pub first_undecided: Option<JudgedLogin>,
}

/// Logins that ended in a stretch of time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoginCounts {
    /// Accepted.
    pub accepted: u64,
    /// Refused for what they presented.
    pub refused: u64,
    /// Turned away for the moment, or without any answer.
    pub undecided: u64,
}

/// Logins of one kind that were due in the window, including those that ended in the drain.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LoginFigures {
    /// Accepted.
    pub accepted: u64,
    /// Refused for what they presented.
    pub refused: u64,
    /// Refused because the broker was busy or away for the moment: no decision.
    pub turned_away: u64,
    /// Without any answer: no connection, a broken one, or none in time.
    pub failed: u64,
    /// Not begun, or not ended, when the drain was over.
    pub unfinished: u64,
    /// From the time that a login was due to the accepting CONNACK.
    #[serde(with = "crate::histogram::form")]
    pub accepted_us: Histogram,
    /// The same to the refusal.
    #[serde(with = "crate::histogram::form")]
    pub refused_us: Histogram,
    /// Refusals by reason code.
    #[serde(with = "crate::wire::reasons")]
    pub reasons: BTreeMap<ReasonCode, u64>,
}

/// A login and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JudgedLogin {
    /// The client.
    pub client: ClientIndex,
    /// What it presented.
    pub kind: LoginKind,
    /// Why it ended; `None` if it was accepted.
    pub why: Option<Failure>,
}

impl LoginCounts {
    /// Decisions of the broker.
    pub const fn decided(&self) -> u64 {
        self.accepted + self.refused
    }

    pub(crate) fn note(&mut self, why: Option<&Failure>) {
        match why {
            None => self.accepted += 1,
            Some(Failure::Refused(reason)) if !is_temporary(*reason) => self.refused += 1,
            Some(_) => self.undecided += 1,
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.accepted += other.accepted;
        self.refused += other.refused;
        self.undecided += other.undecided;
    }
}

impl Default for LoginFigures {
    fn default() -> Self {
        Self {
            accepted: 0,
            refused: 0,
            turned_away: 0,
            failed: 0,
            unfinished: 0,
            accepted_us: histogram(),
            refused_us: histogram(),
            reasons: BTreeMap::new(),
        }
    }
}

impl LoginFigures {
    /// Logins that were due.
    pub fn due(&self) -> u64 {
        self.accepted + self.refused + self.undecided()
    }

    /// Logins without a decision.
    pub fn undecided(&self) -> u64 {
        self.turned_away + self.failed + self.unfinished
    }

    fn add(&mut self, other: &Self) {
        self.accepted += other.accepted;
        self.refused += other.refused;
        self.turned_away += other.turned_away;
        self.failed += other.failed;
        self.unfinished += other.unfinished;
        add(&mut self.accepted_us, &other.accepted_us);
        add(&mut self.refused_us, &other.refused_us);
        for (reason, count) in &other.reasons {
            *self.reasons.entry(*reason).or_default() += count;
        }
    }
}

impl LoginTotals {
    /// The logins of one kind.
    pub fn of(&self, kind: LoginKind) -> &LoginFigures {
        &self.kinds[kind as usize]
    }

    pub(crate) fn of_mut(&mut self, kind: LoginKind) -> &mut LoginFigures {
        &mut self.kinds[kind as usize]
    }

    /// Logins that the broker decided wrongly.
    pub fn misjudged(&self) -> u64 {
        let wrong = |kind: LoginKind| match kind.must_be_accepted() {
            true => self.of(kind).refused,
            false => self.of(kind).accepted,
        };
        LoginKind::ALL.map(wrong).iter().sum()
    }

    /// Adds a login that took `took_ns` from the time when it was due.
    pub(crate) fn note(&mut self, login: JudgedLogin, took_ns: u64) {
        let JudgedLogin { kind, ref why, .. } = login;
        let figures = self.of_mut(kind);
        let is_misjudged = match why {
            None => {
                figures.accepted += 1;
                record(&mut figures.accepted_us, took_ns);
                !kind.must_be_accepted()
            }
            Some(Failure::Refused(reason)) => {
                *figures.reasons.entry(*reason).or_default() += 1;
                if is_temporary(*reason) {
                    figures.turned_away += 1;
                    self.first_undecided.get_or_insert(login);
                    return;
                }
                figures.refused += 1;
                record(&mut figures.refused_us, took_ns);
                kind.must_be_accepted()
            }
            Some(_) => {
                figures.failed += 1;
                self.first_undecided.get_or_insert(login);
                return;
            }
        };
        if is_misjudged {
            self.first_misjudged.get_or_insert(login);
        }
    }

    /// Adds what belongs to the window by the time when it was due.
    pub(crate) fn add_due(&mut self, other: &Self) {
        for (mine, theirs) in self.kinds.iter_mut().zip(&other.kinds) {
            mine.add(theirs);
        }
        for (mine, theirs) in [
            (&mut self.first_misjudged, &other.first_misjudged),
            (&mut self.first_undecided, &other.first_undecided),
        ] {
            if mine.is_none() {
                mine.clone_from(theirs);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_are_told_from_refusals_for_the_moment() {
        let client = ClientIndex::new(3);
        let mut part = LoginTotals::default();
        for (kind, why) in [
            (LoginKind::Right, None),
            (LoginKind::Right, Some(Failure::Refused(ReasonCode::SERVER_BUSY))),
            (LoginKind::WrongPassword, Some(Failure::Refused(ReasonCode::NOT_AUTHORIZED))),
            (LoginKind::UnknownUser, Some(Failure::Closed)),
        ] {
            part.ended.note(why.as_ref());
            part.note(JudgedLogin { client, kind, why }, 5_000);
        }
        assert_eq!(part.ended, LoginCounts { accepted: 1, refused: 1, undecided: 2 });
        assert_eq!((part.misjudged(), &part.first_misjudged), (0, &None));
        let mut sum = LoginTotals::default();
        sum.add_due(&part);
        let refused = Some(Failure::Refused(ReasonCode::BANNED));
        part.note(JudgedLogin { client, kind: LoginKind::Right, why: refused.clone() }, 7_000);
        part.note(JudgedLogin { client, kind: LoginKind::UnknownUser, why: None }, 7_000);
        sum.add_due(&part);
        let right = sum.of(LoginKind::Right);
        assert_eq!((right.accepted, right.turned_away, right.refused, right.due()), (2, 2, 1, 5));
        assert_eq!(
            (right.accepted_us.len(), right.accepted_us.max(), right.refused_us.max()),
            (2, 5, 7)
        );
        assert_eq!(right.reasons[&ReasonCode::SERVER_BUSY], 2);
        assert_eq!((sum.misjudged(), sum.of(LoginKind::UnknownUser).undecided()), (2, 2));
        let first = sum.first_misjudged.expect("one was refused");
        assert_eq!((first.kind, first.why), (LoginKind::Right, refused));
    }
}
