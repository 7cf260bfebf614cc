//! `tacho completions` and `tacho man`: help in the shell and by `man`, made from the arguments.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::exit::{self, Failure};

/// Print completions for a shell.
///
/// For bash, in ~/.bashrc: `source <(tacho completions bash)`. For zsh, before compinit:
/// `tacho completions zsh > DIR/_tacho` with a DIR of $fpath. For fish:
/// `tacho completions fish > ~/.config/fish/completions/tacho.fish`.
#[derive(Args, Debug)]
pub(crate) struct CompletionsArguments {
    /// The shell.
    shell: Shell,
}

/// Print the manual page of a command, or write the pages of all.
///
/// `tacho man run | man -l -` shows one.
#[derive(Args, Debug)]
pub(crate) struct ManArguments {
    /// The command, as `journal export`; without one the page of tacho.
    #[arg(value_name = "COMMAND", conflicts_with = "dir")]
    command: Vec<String>,
    /// Write the pages of all commands into this directory, which is made if it is missing.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(crate) fn completions(mut tacho: Command, arguments: &CompletionsArguments) -> u8 {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut tacho, "tacho", &mut script);
    put(&script)
}

pub(crate) fn man(tacho: Command, arguments: &ManArguments) -> Result<u8, Failure> {
    if let Some(dir) = &arguments.dir {
        return write_all(tacho, dir).map(|()| exit::OK).map_err(|error| {
            Failure::new(exit::UNEXPECTED, format!("cannot write to {}: {error}", dir.display()))
        });
    }
    let page = page_of(tacho, &arguments.command)?;
    let mut text = Vec::new();
    // Invariant: writing to memory does not fail.
    page.render(&mut text).map_err(|error| Failure::new(exit::UNEXPECTED, error))?;
    Ok(put(&text))
}

fn write_all(tacho: Command, dir: &Path) -> io::Result<()> {
    fs::create_dir_all(dir)?;
    clap_mangen::generate_to(tacho, dir)
}

fn page_of(tacho: Command, path: &[String]) -> Result<Man, Failure> {
    let mut built = tacho.disable_help_subcommand(true);
    built.build();
    let mut command = &built;
    for name in path {
        let found = command.find_subcommand(name).filter(|found| !found.is_hide_set());
        command = found.ok_or_else(|| {
            let known = command.get_subcommands().filter(|known| !known.is_hide_set());
            let known: Vec<&str> = known.map(Command::get_name).collect();
            let within = command.get_display_name().unwrap_or("tacho");
            let what = match known.is_empty() {
                true => format!("{within} has no commands"),
                false => format!("{within} has no command {name}: it has {}", known.join(", ")),
            };
            Failure::new(exit::UNEXPECTED, what)
        })?;
    }
    let name = command.get_display_name().unwrap_or("tacho").to_owned();
    Ok(Man::new(command.clone()).title(name))
}

/// A reader that has gone away is no error.
fn put(text: &[u8]) -> u8 {
    match io::stdout().lock().write_all(text) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => exit::UNEXPECTED,
        _ => exit::OK,
    }
}
