//! The arguments of `tacho run`.

use clap::Args;

use super::load_arguments::{LoadArguments, OutputArguments};
use super::target_arguments::TargetArguments;
use crate::exit;

#[derive(Debug, Args)]
#[command(after_help = exit::HELP)]
pub(crate) struct RunArguments {
    /// Name of a scenario or suite (see 'tacho scenario list'), a scenario file or a JMeter plan
    pub(super) scenario: String,

    /// Of a suite, run only the rows whose series or label has this in it, or fits it as a whole
    /// where it has a '*'; may be given several times
    #[arg(long, value_name = "PATTERN")]
    pub(super) only: Vec<String>,

    #[command(flatten)]
    pub(super) targets: TargetArguments,

    #[command(flatten)]
    pub(super) load: LoadArguments,

    #[command(flatten)]
    pub(super) output: OutputArguments,
}
