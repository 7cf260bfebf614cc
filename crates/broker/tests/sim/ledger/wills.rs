//! Wills: published once or not at all, as the end of their connection says.

use std::collections::BTreeMap;

use tacho_codec::QoS;

use super::Moment;
use crate::wire::WillWish;
use crate::world::SECOND_NS;

/// What is known of a will's fate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Its connection lasts, or it is open what came of it.
    Open,
    /// It has to be published.
    Must,
    /// It must not be published.
    MustNot,
    /// The same, unless a crash comes before the next commit: nobody was promised anything.
    Deleted,
    /// Its delay runs, since this time at the earliest.
    Delayed {
        since_ns: u64,
        /// CONNECTs sent since, accepted or not: each may have cancelled it.
        attempts: u32,
    },
}

#[derive(Clone, Copy, Debug)]
struct Will {
    client: usize,
    delay_s: u32,
    qos: QoS,
    /// It is kept by a session that outlives its connection.
    lasts: bool,
    fate: Fate,
    /// Crashes since it was sent.
    crashes: u32,
}

/// How a connection with a will ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// CONNACK had not come: nobody knows whether the will was ever there.
    Unaccepted,
    /// CONNACK refused the connection.
    Refused,
    /// The broker has seen DISCONNECT 0x00 and closed.
    Polite,
    /// DISCONNECT was on its way when the connection broke.
    MaybePolite,
    /// Without DISCONNECT. The broker noticed at this time at the earliest.
    Lost { since_ns: u64, session_ends: bool },
}

/// All wills, by the number of their message.
#[derive(Default)]
pub(crate) struct Wills {
    all: BTreeMap<u32, Will>,
}

impl Wills {
    pub(crate) fn armed(&mut self, wish: WillWish, client: usize, lasts: bool) {
        let WillWish { id, delay_s, qos, .. } = wish;
        self.all.insert(id, Will { client, delay_s, qos, lasts, fate: Fate::Open, crashes: 0 });
    }

    /// What was to be kept is kept now.
    pub(crate) fn committed(&mut self) {
        for will in self.all.values_mut().filter(|will| will.fate == Fate::Deleted) {
            will.fate = Fate::MustNot;
        }
    }

    /// The broker died, and with it what was in memory only.
    pub(crate) fn crashed(&mut self) {
        for will in self.all.values_mut() {
            will.crashes += 1;
            let is_kept = will.lasts && will.qos != QoS::AtMostOnce;
            let may_go = matches!(will.fate, Fate::Must | Fate::Delayed { .. });
            if will.fate == Fate::Deleted || may_go && !is_kept {
                will.fate = Fate::Open;
            }
        }
    }

    pub(crate) fn ended(&mut self, id: u32, ending: Ending) {
        let Some(will) = self.all.get_mut(&id) else { return };
        will.fate = match ending {
            Ending::Unaccepted | Ending::MaybePolite => Fate::Open,
            Ending::Polite => Fate::Deleted,
            Ending::Refused => Fate::MustNot,
            Ending::Lost { session_ends: true, .. } => Fate::Must,
            Ending::Lost { .. } if will.delay_s == 0 => Fate::Must,
            Ending::Lost { since_ns, .. } => Fate::Delayed { since_ns, attempts: 0 },
        };
    }

    /// The client sends CONNECT.
    pub(crate) fn connecting(&mut self, client: usize) {
        for will in self.all.values_mut().filter(|will| will.client == client) {
            if let Fate::Delayed { attempts, .. } = &mut will.fate {
                *attempts += 1;
            }
        }
    }

    /// The client's next connection was accepted; `lasted` is that the session is the same one for
    /// certain, and not one that ended, and began anew with a CONNECT without an answer.
    pub(crate) fn connected(
        &mut self,
        client: usize,
        (session_present, lasted): (bool, bool),
        now_ns: u64,
    ) {
        for will in self.all.values_mut().filter(|will| will.client == client) {
            let Fate::Delayed { since_ns, attempts } = will.fate else { continue };
            let due_ns = since_ns + u64::from(will.delay_s) * SECOND_NS;
            will.fate = match session_present {
                // The session's end publishes it.
                false if attempts == 1 => Fate::Must,
                true if lasted && now_ns < due_ns => Fate::MustNot,
                _ => Fate::Open,
            };
        }
    }

    /// Every delay is over and every end was noticed.
    pub(crate) fn delays_over(&mut self) {
        for will in self.all.values_mut() {
            if let Fate::Delayed { attempts, .. } = will.fate {
                will.fate = if attempts == 0 { Fate::Must } else { Fate::Open };
            }
        }
    }

    /// Checks how often each will was seen. Returns how many that had to be were not.
    pub(crate) fn verdict(&self, copies: impl Fn(u32) -> u32, moment: Moment) -> u64 {
        let mut missing = 0;
        for (&id, will) in &self.all {
            let seen = copies(id);
            let again = if will.qos == QoS::ExactlyOnce { 0 } else { will.crashes };
            assert!(seen <= 1 + again, "will {id} {will:?} came {seen} times");
            assert!(
                !matches!(will.fate, Fate::MustNot | Fate::Deleted) || seen == 0,
                "will {id} {will:?} was published, moment {moment}"
            );
            missing += u64::from(will.fate == Fate::Must && seen == 0);
            if will.fate == Fate::Must && seen == 0 {
                eprintln!("will {id} {will:?} was not published");
            }
        }
        missing
    }
}
