//! Errors of a plan.

/// An error of a plan, with its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PlanError {
    pub(super) title: String,
    pub(super) line: Option<u32>,
}

impl PlanError {
    pub(super) fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), line: None }
    }

    pub(super) const fn on_line(mut self, line: u32) -> Self {
        self.line = Some(line);
        self
    }
}

impl std::fmt::Display for PlanError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.title),
            None => f.write_str(&self.title),
        }
    }
}
