//! What is noted beside a message whose distribution is not finished: for whom it still is.

/// Everybody who subscribes to its topic, sessions and one member of every shared subscription, as
/// far as the journal does not say that they have had it.
pub(crate) const FOR_ALL: [u8; 1] = [0];
