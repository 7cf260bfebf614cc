//! Systems without io_uring.

use std::io;
use std::iter;

use super::BatchWrite;
use crate::conn::ConnId;
use crate::stream::Stream;

/// There is none.
pub(crate) enum WriteBatch {}

impl WriteBatch {
    pub(crate) fn new() -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn push(&mut self, _: ConnId, _: &Stream, _: Vec<u8>) -> Result<(), Vec<u8>> {
        match *self {}
    }

    pub(crate) fn is_empty(&self) -> bool {
        match *self {}
    }

    pub(crate) fn write(&mut self) -> io::Result<()> {
        match *self {}
    }

    pub(crate) fn drain(&mut self) -> impl Iterator<Item = BatchWrite> + '_ {
        iter::empty()
    }
}
