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
    /// The same, unless a crash comes before these commits: nothing was acknowledged.
    Deleted { commits: u8 },
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
    /// Commits until it is kept: more than none only if its session was resumed while the journal
    /// took nothing.
    unkept: u8,
}

/// Commits after which everything that came before them is kept: while the journal takes nothing,
/// the next one is of what it had been given earlier.
const COMMITS_OF_STUCK: u8 = 2;

/// What CONNACK says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Accepted {
    pub(crate) session_present: bool,
    /// The session is the same one for certain, and not one that ended, and began anew with a
    /// CONNECT without an answer.
    pub(crate) lasted: bool,
    /// What the CONNECT said is perhaps kept later than it was answered: the journal took nothing
    /// meanwhile. A session that is resumed then is, if the broker dies before there is space, as
    /// it was before: with its former will, and without the new one (DURABILITY.md, "Full and
    /// failing disks").
    pub(crate) unkept: bool,
}

/// How a connection with a will ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// CONNACK had not arrived: it is unknown whether the will ever existed.
    Unaccepted,
    /// CONNACK refused the connection.
    Refused,
    /// The broker has seen DISCONNECT 0x00 and closed; the journal took nothing then, or it did.
    Polite { stuck: bool },
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
        let fate = Fate::Open;
        self.all.insert(id, Will { client, delay_s, qos, lasts, fate, crashes: 0, unkept: 0 });
    }

    /// What was to be kept is kept now.
    pub(crate) fn committed(&mut self) {
        for will in self.all.values_mut() {
            will.unkept = will.unkept.saturating_sub(1);
            will.fate = match will.fate {
                Fate::Deleted { commits: more @ 2.. } => Fate::Deleted { commits: more - 1 },
                Fate::Deleted { .. } => Fate::MustNot,
                fate => fate,
            };
        }
    }

    /// The broker died, and with it what was in memory only.
    pub(crate) fn crashed(&mut self) {
        for will in self.all.values_mut() {
            will.crashes += 1;
            let is_kept = will.lasts && will.qos != QoS::AtMostOnce && will.unkept == 0;
            will.fate = match will.fate {
                Fate::Deleted { .. } => Fate::Open,
                Fate::Must | Fate::Delayed { .. } if !is_kept => Fate::Open,
                fate => fate,
            };
        }
    }

    pub(crate) fn ended(&mut self, id: u32, ending: Ending) {
        let Some(will) = self.all.get_mut(&id) else { return };
        will.fate = match ending {
            Ending::Unaccepted | Ending::MaybePolite => Fate::Open,
            Ending::Polite { stuck: true } => Fate::Deleted { commits: COMMITS_OF_STUCK },
            Ending::Polite { stuck: false } => Fate::Deleted { commits: 1 },
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

    /// The client's next connection was accepted, with this will if it has one.
    pub(crate) fn connected(
        &mut self,
        client: usize,
        own: Option<u32>,
        accepted: Accepted,
        now_ns: u64,
    ) {
        let Accepted { session_present, lasted, unkept } = accepted;
        for will in self.all.values_mut().filter(|will| will.client == client) {
            let Fate::Delayed { since_ns, attempts } = will.fate else { continue };
            let due_ns = since_ns + u64::from(will.delay_s) * SECOND_NS;
            will.fate = match session_present {
                // The session's end publishes it.
                false if attempts == 1 => Fate::Must,
                true if lasted && now_ns < due_ns => match unkept {
                    true => Fate::Deleted { commits: COMMITS_OF_STUCK },
                    false => Fate::MustNot,
                },
                _ => Fate::Open,
            };
        }
        if let Some(will) = own.and_then(|id| self.all.get_mut(&id))
            && unkept
        {
            will.unkept = COMMITS_OF_STUCK;
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
                !matches!(will.fate, Fate::MustNot | Fate::Deleted { .. }) || seen == 0,
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
