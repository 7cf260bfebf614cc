//! The documentation's script plots three runs.

use std::fs;
use std::path::Path;

use libtest_mimic::Trial;

use crate::process::{Peer, Running};
use crate::small_load::run;
use crate::{Verdict, trial};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/plot_runs.py");
/// The first bytes of every PNG.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

pub(crate) fn register(trials: &mut Vec<Trial>) {
    let name = "matplotlib_plots_three_runs".to_owned();
    trials.push(trial(name, &[Peer::Matplotlib], three_runs));
}

fn three_runs() -> Verdict {
    let folder = tempfile::tempdir()?;
    let runs = ["monday", "tuesday", "wednesday"].map(|name| folder.path().join(name));
    let [first, copies @ ..] = &runs;
    run(first)?;
    for copy in copies {
        copy_files(first, copy)?;
    }
    let picture = folder.path().join("runs.png");
    let mut command = Peer::Matplotlib.command()?;
    command.arg(SCRIPT).args(&runs).arg("-o").arg(&picture);
    // Its cache of fonts.
    command.env("MPLCONFIGDIR", folder.path());
    Running::start(command)?.succeed()?;
    let bytes = fs::read(&picture)?;
    match bytes.starts_with(PNG) && bytes.len() > 20_000 {
        true => Ok(()),
        false => Err(format!("no picture: {} bytes", bytes.len()).into()),
    }
}

fn copy_files(from: &Path, to: &Path) -> Result<(), std::io::Error> {
    fs::create_dir(to)?;
    for name in ["summary.json", "timeseries.csv", "e2e.hgrm"] {
        fs::copy(from.join(name), to.join(name))?;
    }
    Ok(())
}
