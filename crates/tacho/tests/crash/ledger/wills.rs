//! Wills: published once, not at all, or at most once, depending on how their connection ended.

use std::collections::BTreeMap;

use super::{Kind, Ledger};

/// Time within which a broker commits changes that it does not acknowledge.
const COMMIT_DELAY_MS: u64 = 1_000;

/// Expected fate of a will.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Its connection is open, or its fate is unknown.
    Open,
    /// It has to be published.
    Must,
    /// It must not be published.
    MustNot,
    /// A DISCONNECT, which has no acknowledgement, deleted it at this time.
    Deleted { at_ms: u64 },
    /// Its delay is running, since this time at the earliest.
    Delayed { since_ms: u64 },
}

/// Whether what decides about a will is on the disk. On one that fails, a session is resumed before
/// the resume and the will of its CONNECT are stored (DURABILITY.md, "Full and failing disks").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stored {
    Yes,
    /// Known to the broker, which may die before it is stored.
    Later,
    /// The broker died before: the session may be the one from before the CONNECT.
    Unknown,
}

#[derive(Clone, Copy, Debug)]
struct Will {
    client: usize,
    delay_ms: u64,
    fate: Fate,
    seen: u32,
    /// A retransmission is distinguishable from a second publication.
    exact: bool,
    stored: Stored,
}

/// How a connection with a will ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// CONNACK had not arrived, or DISCONNECT was in flight: the fate is unknown.
    Unknown,
    /// The broker has seen DISCONNECT 0x00 and closed, at this time.
    Polite { at_ms: u64 },
    /// Without DISCONNECT, or by a kill of the broker, at this time.
    Lost { since_ms: u64 },
}

/// Wills that are not settled, by the number of their message.
#[derive(Default)]
pub(crate) struct Wills {
    all: BTreeMap<u64, Will>,
}

impl Wills {
    pub(crate) fn armed(&mut self, id: u64, client: usize, delay_s: u32, exact: bool) {
        let delay_ms = u64::from(delay_s) * 1000;
        let (fate, stored) = (Fate::Open, Stored::Yes);
        self.all.insert(id, Will { client, delay_ms, fate, seen: 0, exact, stored });
    }

    /// Its CONNECT resumed a session while the disk may fail.
    pub(crate) fn stored_later(&mut self, id: u64) {
        self.all.entry(id).and_modify(|will| will.stored = Stored::Later);
    }

    /// Its CONNECT did not reach the broker.
    pub(crate) fn never_sent(&mut self, id: u64) {
        self.all.remove(&id);
    }

    pub(crate) fn ended(&mut self, id: u64, ending: Ending) {
        let Some(will) = self.all.get_mut(&id) else { return };
        will.fate = match ending {
            _ if will.stored == Stored::Unknown => Fate::Open,
            Ending::Unknown => Fate::Open,
            Ending::Polite { at_ms } => Fate::Deleted { at_ms },
            Ending::Lost { .. } if will.delay_ms == 0 => Fate::Must,
            Ending::Lost { since_ms } => Fate::Delayed { since_ms },
        };
    }

    /// The client sends CONNECT: it may resume its session.
    pub(crate) fn connecting(&mut self, client: usize, now_ms: u64) {
        for will in self.all.values_mut().filter(|will| will.client == client) {
            if let Fate::Delayed { since_ms } = will.fate
                && now_ms >= since_ms + will.delay_ms
            {
                // Due by the client's clock, but the broker may count from its restart.
                will.fate = Fate::Open;
            }
        }
    }

    /// The broker was killed. Deletions have no acknowledgement, so recent ones may be uncommitted,
    /// and all of them if its disk may have failed.
    pub(crate) fn killed(&mut self, now_ms: u64, disk_may_fail: bool) {
        for will in self.all.values_mut() {
            if will.stored == Stored::Later {
                (will.stored, will.fate) = (Stored::Unknown, Fate::Open);
            }
            if let Fate::Deleted { at_ms } = will.fate {
                let is_kept = !disk_may_fail && now_ms - at_ms > COMMIT_DELAY_MS;
                will.fate = if is_kept { Fate::MustNot } else { Fate::Open };
            }
        }
    }

    /// The client has resumed its session; the resume is stored later if the disk may fail.
    pub(crate) fn resumed(&mut self, client: usize, now_ms: u64, disk_may_fail: bool) {
        for will in self.all.values_mut().filter(|will| will.client == client) {
            let Fate::Delayed { since_ms } = will.fate else { continue };
            let is_early = now_ms < since_ms + will.delay_ms;
            will.fate = if is_early && will.seen == 0 { Fate::MustNot } else { Fate::Open };
            if disk_may_fail {
                will.stored = Stored::Later;
            }
        }
    }

    /// A connection attempt broke: the session may have been resumed.
    pub(crate) fn perhaps_resumed(&mut self, client: usize) {
        for will in self.all.values_mut().filter(|will| will.client == client) {
            if matches!(will.fate, Fate::Delayed { .. }) {
                will.fate = Fate::Open;
            }
        }
    }

    /// The will may still arrive.
    pub(super) fn knows(&self, id: u64) -> bool {
        self.all.contains_key(&id)
    }

    fn is_missing(will: &Will) -> bool {
        will.seen == 0 && matches!(will.fate, Fate::Must | Fate::Delayed { .. })
    }

    /// Whether a will of this client is still expected.
    pub(crate) fn is_expected(&self, client: usize) -> bool {
        self.all.values().any(|will| will.client == client && Self::is_missing(will))
    }

    /// Number of wills still expected.
    pub(crate) fn missing(&self) -> usize {
        self.all.values().filter(|will| Self::is_missing(will)).count()
    }
}

impl Ledger {
    /// The subscriber of all wills received this one.
    pub(crate) fn will_seen(&mut self, id: u64) {
        self.totals.wills_seen += 1;
        let Some(will) = self.wills.all.get_mut(&id) else { return };
        will.seen += 1;
        let will = *will;
        if will.seen > 1 && will.exact {
            let text = format!("{will:?} was published {} times: {}", will.seen, self.describe(id));
            self.findings.add(Kind::Will, text);
        }
        if matches!(will.fate, Fate::MustNot | Fate::Deleted { .. }) {
            let text = format!("{will:?} was published: {}", self.describe(id));
            self.findings.add(Kind::Will, text);
        }
    }

    /// Reports the wills that have not arrived in time.
    pub(crate) fn check_wills(&mut self) {
        let missing = self.wills.all.iter().filter(|(_, will)| Wills::is_missing(will));
        let missing: Vec<u64> = missing.map(|(id, _)| *id).collect();
        for id in missing {
            let text =
                format!("{:?} was not published: {}", self.wills.all[&id], self.describe(id));
            self.findings.add(Kind::Will, text);
            self.wills.all.remove(&id);
        }
    }

    /// Drops wills that can no longer change.
    pub(super) fn forget_wills(&mut self, below: u64) {
        self.wills.all.retain(|&id, will| id >= below || will.fate == Fate::Open && will.seen == 0);
    }
}
