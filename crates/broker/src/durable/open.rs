//! What is noted beside a message whose distribution is not finished: for whom it still is.

use tacho_journal::QueueId;

/// Whom an unfinished distribution is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpenFor {
    /// Everybody who subscribes to its topic: sessions, and one member of every shared
    /// subscription.
    All,
    /// One member of the shared subscription whose messages wait in this queue.
    Group(QueueId),
}

const ALL: u8 = 0;
const GROUP: u8 = 1;

impl OpenFor {
    pub(crate) fn encode(self) -> [u8; 9] {
        let (kind, queue) = match self {
            Self::All => (ALL, 0),
            Self::Group(queue) => (GROUP, queue.get()),
        };
        let mut meta = [kind; 9];
        meta[1..].copy_from_slice(&queue.to_le_bytes());
        meta
    }

    /// The reverse; `None` for what no version of this program has written.
    pub(crate) fn decode(meta: &[u8]) -> Option<Self> {
        let (&kind, queue) = meta.split_first()?;
        let queue = u64::from_le_bytes(queue.try_into().ok()?);
        match kind {
            ALL => Some(Self::All),
            GROUP => Some(Self::Group(QueueId::new(queue))),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_comes_back() {
        for whom in [OpenFor::All, OpenFor::Group(QueueId::new(9))] {
            assert_eq!(OpenFor::decode(&whom.encode()), Some(whom));
        }
        for meta in [&[][..], &[0], &[2; 9], &[0; 10]] {
            assert_eq!(OpenFor::decode(meta), None);
        }
    }
}
