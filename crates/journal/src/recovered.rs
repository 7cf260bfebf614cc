//! The content of the log when it was opened.

use std::sync::Arc;

use crate::error::ReadError;
use crate::recovery::{Report, Visitor, visit};
use crate::shared::Shared;

/// The live content at the end of the log when it was opened.
pub struct Recovered {
    shared: Arc<Shared>,
    report: Report,
}

impl Recovered {
    pub(crate) fn new(shared: Arc<Shared>, report: Report) -> Self {
        Self { shared, report }
    }

    /// The result of reading the log.
    #[must_use]
    pub const fn report(&self) -> &Report {
        &self.report
    }

    /// Visits all live content: keys, then entries, then open messages.
    ///
    /// Reads the log a second time, so that memory need not hold its content. To be called before
    /// the first commit; the visitor must not read messages. If a body cannot be read, its key is
    /// visited without a message, and an open message is skipped.
    ///
    /// # Errors
    ///
    /// If the log cannot be read.
    pub fn visit(&mut self, visitor: &mut dyn Visitor) -> Result<(), ReadError> {
        let Self { shared, .. } = self;
        let file = |id| shared.segments.get(id).map(|segment| segment.file);
        visit(&shared.index(), &file, shared.salt, visitor)
    }
}
