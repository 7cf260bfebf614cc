//! Input that is kept until more of it is there.

/// Input of a connection that its handler has not consumed. Most connections have none for most of
/// the time: it takes the place of a pointer, and the list's head comes with the first bytes.
#[derive(Debug, Default)]
pub(crate) struct Kept(
    #[expect(clippy::box_collection, reason = "an idle connection is 16 bytes smaller")]
    Option<Box<Vec<u8>>>,
);

impl Kept {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes().is_empty()
    }

    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        self.0.as_ref().map_or(&[], |bytes| bytes)
    }

    /// Bytes of memory that it has.
    #[inline]
    pub(crate) fn capacity(&self) -> usize {
        self.0.as_ref().map_or(0, |bytes| bytes.capacity())
    }

    /// Takes the bytes out.
    #[inline]
    pub(crate) fn take(&mut self) -> Vec<u8> {
        self.0.as_mut().map(|bytes| std::mem::take(&mut **bytes)).unwrap_or_default()
    }

    /// Keeps these bytes instead.
    #[inline]
    pub(crate) fn put(&mut self, bytes: Vec<u8>) {
        if bytes.capacity() > 0 || self.0.is_some() {
            **self.0.get_or_insert_default() = bytes;
        }
    }

    /// Keeps these bytes, too; more than `small` of them without room for others.
    pub(crate) fn append(&mut self, bytes: &[u8], small: usize) {
        let kept = self.0.get_or_insert_default();
        if bytes.len() > small {
            kept.reserve_exact(bytes.len());
        }
        kept.extend_from_slice(bytes);
    }

    /// Forgets the bytes, and returns their memory.
    pub(crate) fn clear(&mut self) {
        self.0 = None;
    }
}

#[cfg(test)]
mod tests {
    use super::Kept;

    #[test]
    fn what_is_kept_is_taken_once() {
        let mut kept = Kept::default();
        assert!(kept.is_empty() && kept.take().is_empty());
        kept.put(Vec::new());
        assert_eq!(kept.capacity(), 0);
        kept.append(b"ab", 8);
        kept.append(&[b'c'; 100], 8);
        assert_eq!((kept.bytes().len(), &kept.bytes()[..3]), (102, &b"abc"[..]));
        let bytes = kept.take();
        assert!(kept.is_empty());
        kept.put(bytes);
        assert_eq!(kept.bytes().len(), 102);
        kept.clear();
        assert_eq!((kept.is_empty(), kept.capacity()), (true, 0));
    }
}
