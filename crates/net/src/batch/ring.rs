//! Writes in batches with io_uring. The only file of this crate with unsafe code.
//!
//! A batch owns the buffers of its writes from [`WriteBatch::push`] to [`WriteBatch::drain`], and
//! every write is complete before [`WriteBatch::write`] returns: the kernel holds no reference to
//! memory between two batches. The sockets do not block, so that a write completes at once or with
//! `WouldBlock`.
#![allow(unsafe_code, reason = "the kernel is given addresses of buffers")]

use std::io;
use std::os::fd::AsRawFd;

use io_uring::{IoUring, opcode, types};
use rustix::net::SendFlags;

use super::{BATCH_LEN_MAX, BatchWrite};
use crate::conn::ConnId;
use crate::stream::Stream;

/// Writes to be submitted together, from the thread that has created it.
pub(crate) struct WriteBatch {
    /// Dropped before the buffers.
    ring: IoUring,
    writes: Vec<BatchWrite>,
}

impl WriteBatch {
    /// # Errors
    /// The system has no io_uring (Linux 6.1), or forbids it.
    pub(crate) fn new() -> io::Result<Self> {
        // Completions are taken when this thread asks for them, without interrupting it.
        let mut ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_submit_all()
            .build(BATCH_LEN_MAX as u32)?;
        // A filter of system calls may allow the set-up and forbid the use.
        // SAFETY: the operation refers to no memory.
        unsafe { ring.submission().push(&opcode::Nop::new().build()) }
            .map_err(|_| io::ErrorKind::OutOfMemory)?;
        ring.submit_and_wait(1)?;
        ring.completion().for_each(drop);
        Ok(Self { ring, writes: Vec::with_capacity(BATCH_LEN_MAX) })
    }

    /// Adds a write to `stream`, which must not be closed before [`write`](Self::write).
    ///
    /// # Errors
    /// The buffer, if the batch is full or the stream is no socket of the kernel.
    pub(crate) fn push(
        &mut self,
        id: ConnId,
        stream: &Stream,
        buffer: Vec<u8>,
    ) -> Result<(), Vec<u8>> {
        let (Some(socket), Ok(len)) = (stream.socket(), u32::try_from(buffer.len())) else {
            return Err(buffer);
        };
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let send = opcode::Send::new(types::Fd(socket.as_raw_fd()), buffer.as_ptr(), len)
            .flags(flags.bits() as i32)
            .build()
            .user_data(self.writes.len() as u64);
        // SAFETY: the buffer's heap memory stays where it is and is not changed while it is in
        // `writes`. It leaves `writes` when its write is complete; otherwise it is leaked.
        match unsafe { self.ring.submission().push(&send) } {
            Ok(()) => {
                let result = Err(io::ErrorKind::Other.into());
                self.writes.push(BatchWrite { id, buffer, result, is_complete: false });
                Ok(())
            }
            Err(_) => Err(buffer),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Submits all writes and takes their results.
    ///
    /// # Errors
    /// The kernel has not taken them all, against expectation: those that are not known to be
    /// complete have failed with this error. The batch must not be used again.
    pub(crate) fn write(&mut self) -> io::Result<()> {
        let mut incomplete = self.writes.len();
        while incomplete > 0 {
            let submitted = self.ring.submit_and_wait(incomplete);
            for completion in self.ring.completion() {
                let index = usize::try_from(completion.user_data()).unwrap_or(usize::MAX);
                if let Some(write) = self.writes.get_mut(index) {
                    write.is_complete = true;
                    write.result = match usize::try_from(completion.result()) {
                        Ok(taken) => Ok(taken),
                        Err(_) => Err(io::Error::from_raw_os_error(-completion.result())),
                    };
                    incomplete -= 1;
                }
            }
            match submitted {
                Err(error) if error.kind() != io::ErrorKind::Interrupted && incomplete > 0 => {
                    self.abandon(&error);
                    return Err(error);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The kernel may still read the buffers of incomplete writes: they are leaked.
    #[cold]
    fn abandon(&mut self, error: &io::Error) {
        for write in self.writes.iter_mut().filter(|write| !write.is_complete) {
            std::mem::forget(std::mem::take(&mut write.buffer));
            write.result = Err(error.kind().into());
        }
    }

    /// The writes of the last batch, with their results.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = BatchWrite> + '_ {
        self.writes.drain(..)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;

    /// A non-blocking socket and its peer.
    fn pair() -> (Stream, std::net::TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let peer = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, _) = listener.accept().unwrap();
        stream.set_nonblocking(true).unwrap();
        (Stream::Tcp(mio::net::TcpStream::from_std(stream)), peer)
    }

    fn id(index: u32) -> ConnId {
        ConnId::new(index, 0)
    }

    #[test]
    fn every_write_has_its_own_result() {
        let Ok(mut batch) = WriteBatch::new() else { return };
        let (whole, mut peer) = pair();
        let (short, _slow) = pair();
        let (broken, gone) = pair();
        drop(gone);
        if let Stream::Tcp(stream) = &broken {
            stream.shutdown(std::net::Shutdown::Write).unwrap();
        }
        for _ in 0..3 {
            batch.push(id(0), &whole, b"all of it".to_vec()).unwrap();
            batch.push(id(1), &short, vec![7; 32 << 20]).unwrap();
            batch.push(id(2), &broken, b"nothing".to_vec()).unwrap();
            batch.write().unwrap();
            let results: Vec<BatchWrite> = batch.drain().collect();
            let ids: Vec<ConnId> = results.iter().map(|write| write.id).collect();
            assert_eq!(ids, [id(0), id(1), id(2)]);
            assert_eq!(*results[0].result.as_ref().unwrap(), 9);
            match &results[1].result {
                Ok(taken) => assert!(*taken > 0 && *taken < 32 << 20, "{taken}"),
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
            assert_eq!(results[2].result.as_ref().unwrap_err().kind(), io::ErrorKind::BrokenPipe);
            let mut read = [0; 9];
            peer.read_exact(&mut read).unwrap();
            assert_eq!(&read, b"all of it");
        }
    }

    #[test]
    fn a_full_batch_gives_the_buffer_back() {
        let Ok(mut batch) = WriteBatch::new() else { return };
        let (stream, _peer) = pair();
        for _ in 0..BATCH_LEN_MAX {
            batch.push(id(0), &stream, vec![1]).unwrap();
        }
        assert_eq!(batch.push(id(0), &stream, vec![2]), Err(vec![2]));
        batch.write().unwrap();
        assert_eq!(batch.drain().count(), BATCH_LEN_MAX);
        assert!(batch.is_empty());
    }
}
