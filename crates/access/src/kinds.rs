//! Kinds of PUBLISH and of subscriptions, as rules tell them apart.

use tacho_topic::Filter;

/// What a PUBLISH is, apart from its topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PublishKind {
    qos: u8,
    retain: bool,
}

impl PublishKind {
    /// Of this QoS, 0 to 2, and with this retain flag.
    pub const fn new(qos: u8, retain: bool) -> Self {
        Self { qos: if qos > 2 { 2 } else { qos }, retain }
    }

    const fn bit(self) -> u8 {
        1 << (2 * self.qos + self.retain as u8)
    }
}

/// A set of kinds of PUBLISH.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PublishKinds(u8);

impl PublishKinds {
    /// None.
    pub const NONE: Self = Self(0);
    /// All.
    pub const ALL: Self = Self(0b11_11_11);

    /// One of them, where rules make no difference.
    pub const ANY: PublishKind = PublishKind::new(0, false);

    /// Those of these levels, and with this retain flag if one is given.
    pub(crate) fn of(qos: QosSet, retain: Option<bool>) -> Self {
        let levels = (0..=2).filter(|&level| qos.has(level));
        let kinds =
            levels.flat_map(|level| [false, true].map(|flag| PublishKind::new(level, flag)));
        let wanted = kinds.filter(|kind| retain.is_none_or(|retain| kind.retain == retain));
        Self(wanted.fold(0, |bits, kind| bits | kind.bit()))
    }

    /// All or none.
    pub(crate) const fn all_if(all: bool) -> Self {
        if all { Self::ALL } else { Self::NONE }
    }

    /// Whether it has a kind.
    #[inline]
    pub const fn has(self, kind: PublishKind) -> bool {
        self.0 & kind.bit() != 0
    }

    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Those that both have.
    #[must_use]
    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(crate) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

/// A set of QoS levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QosSet(u8);

impl QosSet {
    pub(crate) const ALL: Self = Self(0b111);

    /// `None` if one of them is above 2.
    pub(crate) fn of(levels: &[i64]) -> Option<Self> {
        let bits = levels.iter().try_fold(0, |bits, level| match level {
            0..=2 => Some(bits | 1 << level),
            _ => None,
        });
        bits.map(Self)
    }

    pub(crate) const fn up_to(level: u8) -> Self {
        Self(if level >= 2 { 0b111 } else { (1 << (level + 1)) - 1 })
    }

    pub(crate) const fn has(self, level: u8) -> bool {
        level <= 2 && self.0 & 1 << level != 0
    }
}

/// What a subscription is, apart from its topics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubscriptionKind<'a> {
    /// The QoS that is asked for, 0 to 2.
    pub qos: u8,
    /// The group, if it is a shared subscription.
    pub group: Option<&'a str>,
}

impl<'a> SubscriptionKind<'a> {
    /// Of a subscription to this filter.
    #[must_use]
    pub fn of(filter: &'a Filter, qos: u8) -> Self {
        let group = match filter {
            Filter::Plain(_) => None,
            Filter::Shared(shared) => Some(shared.group()),
        };
        Self { qos, group }
    }
}

/// Which subscriptions a rule is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SubscriptionTerms {
    pub(crate) qos: QosSet,
    pub(crate) sharing: Sharing,
}

/// Shared subscriptions or others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    Any,
    NotShared,
    Shared,
    /// Those of these groups.
    Groups(Box<[Box<str>]>),
}

impl SubscriptionTerms {
    pub(crate) fn has(&self, kind: &SubscriptionKind<'_>) -> bool {
        let is_meant = match (&self.sharing, kind.group) {
            (Sharing::Any, _) | (Sharing::NotShared, None) | (Sharing::Shared, Some(_)) => true,
            (Sharing::Groups(groups), Some(group)) => groups.iter().any(|known| **known == *group),
            (Sharing::NotShared, Some(_)) | (Sharing::Shared | Sharing::Groups(_), None) => false,
        };
        is_meant && self.qos.has(kind.qos)
    }

    pub(crate) fn has_all(&self) -> bool {
        self.qos == QosSet::ALL && self.sharing == Sharing::Any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_apart_by_qos_and_retain() {
        let kinds = PublishKinds::of(QosSet::of(&[0, 2]).unwrap(), Some(true));
        for qos in 0..=2 {
            for retain in [false, true] {
                let kind = PublishKind::new(qos, retain);
                assert_eq!(kinds.has(kind), qos != 1 && retain, "{kind:?}");
                assert!(PublishKinds::ALL.has(kind) && !PublishKinds::NONE.has(kind));
            }
        }
        assert_eq!(PublishKinds::of(QosSet::ALL, None), PublishKinds::ALL);
        assert_eq!(QosSet::of(&[3]), None);
        assert_eq!(QosSet::of(&[-1]), None);
    }
}
