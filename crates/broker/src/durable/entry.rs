//! The format of queue entries in the journal: how a message is to be delivered, and the stage of
//! the delivery.

use tacho_codec::{PacketId, QoS};
use tacho_journal::QueueId;
use tacho_session::{Delivery, SubscriptionIdList};

use super::WallClock;
use super::bytes::{Rest, put_number};

/// The stage of a delivery: the state of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryStage {
    /// The message is queued.
    Queued,
    /// The message has its packet identifier; its PUBLISH may have been sent.
    Sent(PacketId),
    /// PUBREC was received: only PUBREL and PUBCOMP are missing.
    Released(PacketId),
}

const SENT: u32 = 1 << 16;
const RELEASED: u32 = 2 << 16;

impl EntryStage {
    pub(crate) fn encode(self) -> u32 {
        match self {
            Self::Queued => 0,
            Self::Sent(id) => SENT | u32::from(id.get()),
            Self::Released(id) => RELEASED | u32::from(id.get()),
        }
    }

    pub(crate) fn decode(state: u32) -> Option<Self> {
        if state == 0 {
            return Some(Self::Queued);
        }
        let id = PacketId::new(state as u16)?;
        match state & !0xffff {
            SENT => Some(Self::Sent(id)),
            RELEASED => Some(Self::Released(id)),
            _ => None,
        }
    }
}

/// How a message is to be delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EntryMeta {
    pub(crate) qos: QoS,
    pub(crate) retain: bool,
    /// The queue of the shared subscription of the message, if any.
    pub(crate) group: Option<QueueId>,
    pub(crate) subscription_ids: SubscriptionIdList,
    pub(crate) size_bytes: u32,
    /// On the clock of the event loops.
    pub(crate) expires_at_ns: u64,
}

/// The only version so far, in the highest bits of the first byte.
const VERSION: u8 = 1 << 6;
const VERSION_BITS: u8 = 0b11 << 6;
const QOS: u8 = 0b11;
const RETAIN: u8 = 1 << 2;
const GROUP: u8 = 1 << 3;
const EXPIRES: u8 = 1 << 4;
const IDS: u8 = 1 << 5;

/// Writes the metadata of a delivery to `meta`.
pub(crate) fn encode<M>(
    delivery: &Delivery<M>,
    group: Option<QueueId>,
    wall: WallClock,
    meta: &mut Vec<u8>,
) {
    let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
    let ids = delivery.subscription_ids.as_slice();
    let expires = delivery.expires_at_ns != u64::MAX;
    meta.clear();
    meta.push(
        VERSION
            | delivery.qos as u8
            | flag(delivery.retain, RETAIN)
            | flag(group.is_some(), GROUP)
            | flag(expires, EXPIRES)
            | flag(!ids.is_empty(), IDS),
    );
    put_number(delivery.size_bytes.into(), meta);
    if let Some(group) = group {
        put_number(group.get(), meta);
    }
    if expires {
        meta.extend_from_slice(&wall.to_unix(delivery.expires_at_ns).to_le_bytes());
    }
    if !ids.is_empty() {
        put_number(ids.len() as u64, meta);
        ids.iter().for_each(|&id| put_number(id.into(), meta));
    }
}

impl EntryMeta {
    /// Decodes the metadata; `None` if the format is invalid.
    pub(crate) fn decode(meta: &[u8], wall: WallClock) -> Option<Self> {
        let mut rest = Rest(meta);
        let flags = rest.byte()?;
        if flags & VERSION_BITS != VERSION {
            return None;
        }
        let has = |flag: u8| flags & flag != 0;
        let size_bytes = rest.number_u32()?;
        let group = if has(GROUP) { Some(QueueId::new(rest.number()?)) } else { None };
        let expires_at_ns = if has(EXPIRES) { wall.from_unix(rest.u64()?) } else { u64::MAX };
        let mut subscription_ids = SubscriptionIdList::NONE;
        if has(IDS) {
            for _ in 0..rest.number()? {
                subscription_ids.push(rest.number_u32()?);
            }
        }
        Some(Self {
            qos: QoS::from_u8(flags & QOS)?,
            retain: has(RETAIN),
            group,
            subscription_ids,
            size_bytes,
            expires_at_ns,
        })
    }

    /// The delivery of `message` with this metadata.
    pub(crate) fn delivery<M>(self, message: M) -> Delivery<M> {
        Delivery {
            message,
            qos: self.qos,
            retain: self.retain,
            subscription_ids: self.subscription_ids,
            size_bytes: self.size_bytes,
            expires_at_ns: self.expires_at_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wall() -> WallClock {
        WallClock::new(1_000, 1_800_000_000_000_000_000)
    }

    #[test]
    fn stages_round_trip_and_unknown_states_are_refused() {
        let id = PacketId::new(0xfedc).unwrap();
        for stage in [EntryStage::Queued, EntryStage::Sent(id), EntryStage::Released(id)] {
            assert_eq!(EntryStage::decode(stage.encode()), Some(stage));
        }
        for state in [7, SENT, RELEASED, 3 << 16 | 1, 1 << 30 | SENT | 1] {
            assert_eq!(EntryStage::decode(state), None, "{state:#x}");
        }
    }

    #[test]
    fn deliveries_round_trip() {
        for qos in [QoS::AtMostOnce, QoS::AtLeastOnce, QoS::ExactlyOnce] {
            for (retain, expires_at_ns) in [(false, u64::MAX), (true, 5_000_000)] {
                for ids in [vec![], vec![7], vec![1, 300, 268_435_455]] {
                    for group in [None, Some(QueueId::new(u64::MAX))] {
                        let delivery = Delivery {
                            message: 3_u32,
                            qos,
                            retain,
                            subscription_ids: ids.iter().copied().collect(),
                            size_bytes: 1_000_000,
                            expires_at_ns,
                        };
                        let mut meta = Vec::new();
                        encode(&delivery, group, wall(), &mut meta);
                        let decoded = EntryMeta::decode(&meta, wall()).unwrap();
                        assert_eq!(decoded.group, group);
                        assert_eq!(decoded.delivery(3), delivery);
                        for len in 0..meta.len() {
                            assert_eq!(EntryMeta::decode(&meta[..len], wall()), None);
                        }
                    }
                }
            }
        }
        assert_eq!(EntryMeta::decode(&[0, 0], wall()), None);
        assert_eq!(EntryMeta::decode(&[VERSION | 3, 0], wall()), None);
    }
}
