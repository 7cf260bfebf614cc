//! Topic levels in the nodes of trees, and walks over them.

/// Longest level, in bytes, that needs no allocation. Trees hold a level per node, so eight bytes
/// more would cost more memory than the allocations of the few longer levels.
const INLINE_LEN_MAX: usize = 14;

/// Owned text of one level; short text is stored inline.
#[derive(Clone, Debug)]
pub(crate) enum Level {
    Inline {
        len: u8,
        bytes: [u8; INLINE_LEN_MAX],
    },
    /// Behind one more pointer, so that the enum stays at 16 bytes.
    Heap(Box<Box<[u8]>>),
}

impl Level {
    pub(crate) fn new(text: &str) -> Self {
        if text.len() > INLINE_LEN_MAX {
            return Self::Heap(Box::new(text.as_bytes().into()));
        }
        let mut bytes = [0; INLINE_LEN_MAX];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Self::Inline { len: text.len() as u8, bytes }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Inline { len, bytes } => &bytes[..usize::from(*len)],
            Self::Heap(bytes) => bytes,
        }
    }
}

/// How a filter ends, relative to the tree node that holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// With the literal level of the node.
    Here,
    /// With a `+` below the node. Such filters are too frequent to have nodes of their own.
    Single,
    /// With a `#` below the node.
    Multi,
}

/// The levels on the path to the node that holds `filter`, `None` for the root, and how the filter
/// ends there.
pub(crate) fn split_end(filter: &str) -> (Option<&str>, End) {
    let (path, end) = match filter.as_bytes().last() {
        Some(b'#') => (&filter[..filter.len() - 1], End::Multi),
        Some(b'+') => (&filter[..filter.len() - 1], End::Single),
        _ => return (Some(filter), End::Here),
    };
    (path.strip_suffix('/'), end)
}

/// Walks the levels of a topic by byte offset, so that a position in it is one number.
#[derive(Clone, Copy)]
pub(crate) struct Levels<'a>(&'a str);

impl<'a> Levels<'a> {
    pub(crate) fn new(topic: &'a str) -> Self {
        Self(topic)
    }

    /// Whether `offset` is behind the last level.
    pub(crate) fn is_end(self, offset: u32) -> bool {
        offset as usize > self.0.len()
    }

    /// The level that starts at `offset` and the offset of the next one.
    pub(crate) fn at(self, offset: u32) -> (&'a str, u32) {
        let rest = &self.0[offset as usize..];
        let len = memchr::memchr(b'/', rest.as_bytes()).unwrap_or(rest.len());
        (&rest[..len], offset + len as u32 + 1)
    }
}

/// A stack of pending steps of a tree walk. The first steps are stored inline, so that walks for
/// ordinary topics allocate nothing.
pub(crate) struct Pending<T> {
    inline: [T; PENDING_INLINE],
    inline_len: usize,
    spilled: Vec<T>,
}

/// A walk holds at most one pending step per level, so this covers topics of that many levels.
const PENDING_INLINE: usize = 32;

impl<T: Copy + Default> Pending<T> {
    pub(crate) fn new() -> Self {
        Self { inline: [T::default(); PENDING_INLINE], inline_len: 0, spilled: Vec::new() }
    }

    pub(crate) fn push(&mut self, step: T) {
        if self.inline_len < PENDING_INLINE {
            self.inline[self.inline_len] = step;
            self.inline_len += 1;
        } else {
            self.spilled.push(step);
        }
    }

    pub(crate) fn pop(&mut self) -> Option<T> {
        if let Some(step) = self.spilled.pop() {
            return Some(step);
        }
        self.inline_len = self.inline_len.checked_sub(1)?;
        Some(self.inline[self.inline_len])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_keep_their_text_inline_or_not() {
        assert_eq!(size_of::<Level>(), 16);
        for len in [0, 1, INLINE_LEN_MAX, INLINE_LEN_MAX + 1, 60_000] {
            let text = "x".repeat(len);
            assert_eq!(Level::new(&text).as_bytes(), text.as_bytes());
        }
    }

    #[test]
    fn offsets_visit_every_level() {
        for topic in ["a", "/", "a/b", "a//", "", "/a/"] {
            let levels = Levels::new(topic);
            let (mut offset, mut seen) = (0, Vec::new());
            while !levels.is_end(offset) {
                let (level, next) = levels.at(offset);
                seen.push(level);
                offset = next;
            }
            assert_eq!(seen, topic.split('/').collect::<Vec<_>>());
        }
    }

    #[test]
    fn pending_steps_come_back_last_in_first_out() {
        let mut pending = Pending::new();
        for step in 0..100_u32 {
            pending.push(step);
        }
        for step in (0..100).rev() {
            assert_eq!(pending.pop(), Some(step));
        }
        assert_eq!(pending.pop(), None);
    }
}
