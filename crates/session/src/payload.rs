//! What a session carries.

use std::sync::Arc;

/// A message as the owner of a session hands it over: cheap to clone, and perhaps not in memory.
///
/// A message that is not loaded keeps its place in queue and window and gets its packet
/// identifier, but its PUBLISH does not leave, nor does one behind it; acknowledgements and PUBREL
/// do. The owner finds out with [`crate::server::Session::unloaded`] and helps with
/// [`crate::server::Session::load`].
pub trait Payload: Clone {
    /// Whether the message itself is here; else this only says where it is.
    #[inline]
    fn is_loaded(&self) -> bool {
        true
    }
}

impl Payload for &str {}
impl<T: ?Sized> Payload for Arc<T> {}
impl Payload for u32 {}
impl Payload for u64 {}
