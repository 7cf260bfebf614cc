//! Readiness of a socket, as reported by the kernel or by a simulation.

/// One report about a socket.
pub(crate) trait Readiness {
    fn is_readable(&self) -> bool;
    fn is_writable(&self) -> bool;
    fn is_read_closed(&self) -> bool;
    fn is_error(&self) -> bool;
}

impl Readiness for mio::event::Event {
    #[inline]
    fn is_readable(&self) -> bool {
        self.is_readable()
    }

    #[inline]
    fn is_writable(&self) -> bool {
        self.is_writable()
    }

    #[inline]
    fn is_read_closed(&self) -> bool {
        self.is_read_closed()
    }

    #[inline]
    fn is_error(&self) -> bool {
        self.is_error()
    }
}
