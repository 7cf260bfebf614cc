//! Broken rules of the repository, and where they are broken.

/// One broken rule.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// Relative to the root.
    pub(crate) file: String,
    /// 1-based; 0 when the whole file is meant.
    pub(crate) line: usize,
    pub(crate) message: String,
}

impl Finding {
    pub(crate) fn new(file: &str, line: usize, message: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line, message: message.into() }
    }
}

/// Prints them as `file:line: message`.
pub(crate) fn print(findings: &[Finding]) {
    for finding in findings {
        eprintln!("{}:{}: {}", finding.file, finding.line, finding.message);
    }
}
