//! The places that one session's hand-offs have in the queues of shared groups.

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use crate::delivery::Place;

/// One session's places in queues of groups. Those of a session that lives in memory end with it.
#[derive(Debug, Default)]
pub(super) struct HandOffs {
    /// By the numbers of its messages in the session.
    pub(super) places: HashMap<u64, Place, RandomState>,
    /// Of the message that it is being offered.
    pub(super) offered: Option<Place>,
}
