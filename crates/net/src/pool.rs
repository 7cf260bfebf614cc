//! Reused output buffers, so that an idle connection owns none.

/// Capacity of a fresh buffer: several small messages fit, and a thousand buffers stay in the
/// second-level cache.
const CAPACITY_BYTES: usize = 1024;
/// Larger buffers are freed.
const CAPACITY_KEPT_BYTES_MAX: usize = 64 * 1024;
/// Total capacity of the buffers kept for reuse.
const KEPT_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Last in, first out, so that the next buffer used is likely to be in the cache.
#[derive(Default)]
pub(crate) struct BufferPool {
    free: Vec<Vec<u8>>,
    free_bytes: usize,
}

impl BufferPool {
    #[inline]
    pub(crate) fn take(&mut self) -> Vec<u8> {
        match self.free.pop() {
            Some(buffer) => {
                self.free_bytes -= buffer.capacity();
                buffer
            }
            None => Vec::with_capacity(CAPACITY_BYTES),
        }
    }

    #[inline]
    pub(crate) fn give(&mut self, mut buffer: Vec<u8>) {
        let capacity = buffer.capacity();
        if capacity == 0
            || capacity > CAPACITY_KEPT_BYTES_MAX
            || self.free_bytes + capacity > KEPT_BYTES_MAX
        {
            return;
        }
        buffer.clear();
        self.free_bytes += capacity;
        self.free.push(buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_come_back_empty_and_large_ones_do_not() {
        let mut pool = BufferPool::default();
        let mut buffer = pool.take();
        buffer.extend_from_slice(b"left");
        pool.give(buffer);
        assert_eq!(pool.free.len(), 1);
        assert!(pool.take().is_empty());
        pool.give(Vec::with_capacity(CAPACITY_KEPT_BYTES_MAX + 1));
        assert!(pool.free.is_empty());
        assert_eq!(pool.free_bytes, 0);
    }

    #[test]
    fn kept_bytes_are_bounded() {
        let mut pool = BufferPool::default();
        for _ in 0..1000 {
            pool.give(Vec::with_capacity(CAPACITY_KEPT_BYTES_MAX));
        }
        assert!(pool.free_bytes <= KEPT_BYTES_MAX);
        assert!(pool.free.len() >= 100);
    }
}
