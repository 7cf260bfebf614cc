//! The messages of a session.

use std::sync::Arc;

/// A message as the owner of a session passes it in: cheap to clone, and possibly not in memory.
///
/// A message that is not loaded keeps its place in queue and window and gets its packet
/// identifier, but its PUBLISH and those behind it are not sent; acknowledgements and PUBREL are.
/// The owner lists such messages with [`crate::server::Session::unloaded`] and supplies them with
/// [`crate::server::Session::load`].
pub trait Payload: Clone {
    /// Whether the message itself is in memory; otherwise this is a reference to its storage.
    #[inline]
    fn is_loaded(&self) -> bool {
        true
    }
}

impl Payload for &str {}
impl<T: ?Sized> Payload for Arc<T> {}
impl Payload for u32 {}
impl Payload for u64 {}
