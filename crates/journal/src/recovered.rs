//! The content of the log when it was opened.

use std::sync::Arc;

use crate::error::ReadError;
use crate::recovery::{Report, Visitor, visit};
use crate::shared::Shared;

/// What was live at the end of the log when it was opened.
pub struct Recovered {
    shared: Arc<Shared>,
    report: Report,
}

impl Recovered {
    pub(crate) fn new(shared: Arc<Shared>, report: Report) -> Self {
        Self { shared, report }
    }

    /// How reading the log went.
    #[must_use]
    pub const fn report(&self) -> &Report {
        &self.report
    }

    /// Shows everything that is live: all keys, then entries, then open messages.
    ///
    /// Reads the log a second time, so that memory need not hold what it says. To be called before
    /// the first commit; the visitor must not read messages. A key or an open message whose body
    /// cannot be read is shown without it: as a key without a message, or not at all.
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
