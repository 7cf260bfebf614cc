//! Errors of a scenario: a sentence and its place in the file.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

/// The text of a scenario and the name it goes by in messages.
#[derive(Clone, Debug)]
pub struct SourceText {
    /// File name, or `built-in scenario 'x'`.
    pub name: Arc<str>,
    /// The TOML text.
    pub text: Arc<str>,
    /// Where the files that it names are looked for; without it, in the current directory.
    pub directory: Option<Arc<Path>>,
}

impl SourceText {
    /// A text under a name.
    pub fn new(name: &str, text: &str) -> Self {
        Self { name: name.into(), text: text.into(), directory: None }
    }

    /// The text of a file.
    pub fn file(path: &Path, text: &str) -> Self {
        let directory = path.parent().map(Arc::from);
        Self { name: path.display().to_string().into(), text: text.into(), directory }
    }

    /// Where a file is that the text names: beside the text's own file.
    pub(crate) fn path(&self, named: &Path) -> PathBuf {
        let Some(directory) = &self.directory else { return named.to_owned() };
        let joined = directory.join(named);
        // A resolved scenario is read from another place, where only the full path is right.
        std::path::absolute(&joined).unwrap_or(joined)
    }

    /// Line and column (both from 1, columns in characters) of a byte offset.
    pub fn line_column(&self, offset: usize) -> (usize, usize) {
        let offset = offset.min(self.text.len());
        let before = self.text.get(..offset).unwrap_or("");
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let column = before.get(line_start..).unwrap_or("").chars().count() + 1;
        (before.matches('\n').count() + 1, column)
    }
}

/// The error of a scenario that cannot run: the fault, its place, and the remedy.
///
/// `Display` gives one line (`file:line:column: sentence`); [`ScenarioError::render`] shows the
/// place in the text.
#[derive(Clone, Debug)]
pub struct ScenarioError {
    pub(crate) title: String,
    pub(crate) place: Option<Box<(SourceText, Range<usize>)>>,
    pub(crate) label: String,
    pub(crate) help: Vec<String>,
}

impl ScenarioError {
    /// An error that is not about a place in a file (for example about a `--var`).
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), place: None, label: String::new(), help: Vec::new() }
    }

    /// The same error, pointing at `span` of `source`.
    pub(crate) fn at(mut self, source: &SourceText, span: Range<usize>) -> Self {
        self.place = Some(Box::new((source.clone(), span)));
        self
    }

    /// The same error with a word beside the marked place.
    pub(crate) fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// The same error with a further remedy.
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help.push(help.into());
        self
    }

    /// The message with the lines of the file it is about, in colour if `styled`.
    pub fn render(&self, styled: bool) -> String {
        let mut group = match self.place.as_deref() {
            Some((source, span)) => {
                let length = source.text.len();
                let start = span.start.min(length);
                let end = span.end.clamp(start, length);
                let mut annotation = AnnotationKind::Primary.span(start..end);
                if !self.label.is_empty() {
                    annotation = annotation.label(self.label.as_str());
                }
                Level::ERROR.primary_title(self.title.as_str()).element(
                    Snippet::source(&*source.text).path(&*source.name).annotation(annotation),
                )
            }
            None => annotate_snippets::Group::with_title(
                Level::ERROR.primary_title(self.title.as_str()),
            ),
        };
        for help in &self.help {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        let renderer = if styled { Renderer::styled() } else { Renderer::plain() };
        renderer.render(&[group])
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((source, span)) = self.place.as_deref() {
            let (line, column) = source.line_column(span.start);
            write!(f, "{}:{line}:{column}: ", source.name)?;
        }
        f.write_str(&self.title)?;
        if !self.label.is_empty() {
            write!(f, " ({})", self.label)?;
        }
        for help in &self.help {
            write!(f, "; {help}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ScenarioError {}

/// The one of `known` that `typed` most resembles, if it is close enough to be a slip.
pub(crate) fn closest<'a>(
    typed: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    known
        .into_iter()
        .map(|word| (distance(typed, word), word))
        .filter(|(distance, word)| *distance * 3 <= word.len().max(3))
        .min()
        .map(|(_, word)| word)
}

/// Edit distance (Levenshtein) over bytes.
fn distance(left: &str, right: &str) -> usize {
    let (left, right) = (left.as_bytes(), right.as_bytes());
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in right.iter().enumerate() {
            let substituted = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised() {
        assert_eq!(closest("qoss", ["topic", "qos"]), Some("qos"));
        assert_eq!(closest("publisher", ["publishers", "subscribers"]), Some("publishers"));
        assert_eq!(closest("elephant", ["topic", "qos"]), None);
        assert_eq!(distance("kitten", "sitting"), 3);
    }

    #[test]
    fn lines_and_columns_count_from_one() {
        let source = SourceText::new("x.toml", "a = 1\nä = b\n");
        assert_eq!(source.line_column(0), (1, 1));
        assert_eq!(source.line_column(11), (2, 5));
        assert_eq!(source.line_column(999), (3, 1));
    }

    #[test]
    fn shows_the_place() {
        let source = SourceText::new("x.toml", "a = 1\nqos = 3\n");
        let error = ScenarioError::new("QoS 3 does not exist")
            .at(&source, 12..13)
            .label("0, 1 or 2")
            .help("choose one");
        assert_eq!(error.to_string(), "x.toml:2:7: QoS 3 does not exist (0, 1 or 2); choose one");
        let shown = error.render(false);
        assert!(shown.contains("x.toml:2:7") && shown.contains("^ 0, 1 or 2"), "{shown}");
    }
}
