//! What the user calls a result, and says about it.

use clap::Args;
use tacho_record::Given;

/// Name and note of a run, or of what else is measured.
#[derive(Args, Clone, Debug)]
pub(crate) struct GivenArguments {
    /// Name of the run, in its record, its report and the list of 'tacho serve', and in the name of
    /// its directory without --dir
    #[arg(long, value_name = "NAME", value_parser = |text: &str| line(text, 100))]
    name: Option<String>,

    /// Note on the run, in its record, its report and the list of 'tacho serve'
    #[arg(long, value_name = "TEXT", value_parser = |text: &str| line(text, 1000))]
    note: Option<String>,
}

impl GivenArguments {
    /// As records keep them.
    pub(crate) fn given(&self) -> Given {
        Given {
            name: self.name.clone().unwrap_or_default(),
            note: self.note.clone().unwrap_or_default(),
        }
    }

    /// The name, if there is one.
    pub(super) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }
}

/// Reads one line of at most `chars_max` characters.
fn line(text: &str, chars_max: usize) -> Result<String, String> {
    let text = text.trim();
    if text.is_empty() || text.chars().any(char::is_control) {
        return Err("write one line of text".to_owned());
    }
    match text.chars().count() {
        chars if chars > chars_max => Err(format!("{chars} characters, at most {chars_max}")),
        _ => Ok(text.to_owned()),
    }
}
