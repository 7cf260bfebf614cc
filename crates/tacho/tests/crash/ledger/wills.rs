//! Wills: published once, not at all, or at most once, as the end of their connection says.

use std::collections::BTreeMap;

use super::{Kind, Ledger};

/// So long a broker may take to keep what nobody waits for.
const KEPT_AFTER_MS: u64 = 1_000;

/// What is known of a will's fate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Its connection lasts, or it is open what came of it.
    Open,
    /// It has to be published.
    Must,
    /// It must not be published.
    MustNot,
    /// It was deleted at this time by a DISCONNECT, which nobody acknowledges.
    Deleted { at_ms: u64 },
    /// Its delay runs, since this time at the earliest.
    Delayed { since_ms: u64 },
}

#[derive(Clone, Copy, Debug)]
struct Will {
    client: usize,
    delay_ms: u64,
    fate: Fate,
    seen: u32,
    /// Each repetition can be told from a second publication.
    exact: bool,
}

/// How a connection with a will ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// CONNACK had not come, or DISCONNECT was on its way: nobody knows.
    Unknown,
    /// The broker has seen DISCONNECT 0x00 and closed, at this time.
    Polite { at_ms: u64 },
    /// Without DISCONNECT, or the broker was killed, at this time.
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
        self.all.insert(id, Will { client, delay_ms, fate: Fate::Open, seen: 0, exact });
    }

    /// Its CONNECT reached nobody.
    pub(crate) fn never_sent(&mut self, id: u64) {
        self.all.remove(&id);
    }

    pub(crate) fn ended(&mut self, id: u64, ending: Ending) {
        let Some(will) = self.all.get_mut(&id) else { return };
        will.fate = match ending {
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
                // It was due by its client's clock; the broker's may run from its restart.
                will.fate = Fate::Open;
            }
        }
    }

    /// The broker was killed. What nobody waits for may take a moment until it is kept.
    pub(crate) fn killed(&mut self, now_ms: u64) {
        for will in self.all.values_mut() {
            if let Fate::Deleted { at_ms } = will.fate {
                let is_kept = now_ms - at_ms > KEPT_AFTER_MS;
                will.fate = if is_kept { Fate::MustNot } else { Fate::Open };
            }
        }
    }

    /// The client has its session again.
    pub(crate) fn resumed(&mut self, client: usize, now_ms: u64) {
        for will in self.all.values_mut().filter(|will| will.client == client) {
            let Fate::Delayed { since_ms } = will.fate else { continue };
            let is_early = now_ms < since_ms + will.delay_ms;
            will.fate = if is_early && will.seen == 0 { Fate::MustNot } else { Fate::Open };
        }
    }

    /// A connection was tried and broke: was the session resumed?
    pub(crate) fn perhaps_resumed(&mut self, client: usize) {
        for will in self.all.values_mut().filter(|will| will.client == client) {
            if matches!(will.fate, Fate::Delayed { .. }) {
                will.fate = Fate::Open;
            }
        }
    }

    /// It may still be seen.
    pub(super) fn knows(&self, id: u64) -> bool {
        self.all.contains_key(&id)
    }

    fn is_missing(will: &Will) -> bool {
        will.seen == 0 && matches!(will.fate, Fate::Must | Fate::Delayed { .. })
    }

    /// Wills of a client that will come, or have to.
    pub(crate) fn is_owed(&self, client: usize) -> bool {
        self.all.values().any(|will| will.client == client && Self::is_missing(will))
    }

    /// Wills that have to come still.
    pub(crate) fn missing(&self) -> usize {
        self.all.values().filter(|will| Self::is_missing(will)).count()
    }
}

impl Ledger {
    /// The one who sees all wills gets this one.
    pub(crate) fn will_seen(&mut self, id: u64) {
        self.totals.wills_seen += 1;
        let Some(will) = self.wills.all.get_mut(&id) else { return };
        will.seen += 1;
        let will = *will;
        if will.seen > 1 && will.exact {
            let text = format!("{will:?} came {} times: {}", will.seen, self.tell(id));
            self.findings.add(Kind::Will, text);
        }
        if matches!(will.fate, Fate::MustNot | Fate::Deleted { .. }) {
            let text = format!("{will:?} was published: {}", self.tell(id));
            self.findings.add(Kind::Will, text);
        }
    }

    /// Whatever has to come has had its time.
    pub(crate) fn check_wills(&mut self) {
        let missing = self.wills.all.iter().filter(|(_, will)| Wills::is_missing(will));
        let missing: Vec<u64> = missing.map(|(id, _)| *id).collect();
        for id in missing {
            let text = format!("{:?} was not published: {}", self.wills.all[&id], self.tell(id));
            self.findings.add(Kind::Will, text);
            self.wills.all.remove(&id);
        }
    }

    /// Wills that nothing can happen to any more are forgotten.
    pub(super) fn forget_wills(&mut self, below: u64) {
        self.wills.all.retain(|&id, will| id >= below || will.fate == Fate::Open && will.seen == 0);
    }
}
