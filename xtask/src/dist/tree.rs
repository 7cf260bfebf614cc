//! The files of a package, as they lie in a system.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::Source;
use super::archive::{Tar, gzip, set_modes};
use crate::shell;

/// Completions: for a shell, in a directory with a name that the shell looks for.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/tacho"),
    ("zsh", "usr/share/zsh/vendor-completions/_tacho"),
    ("fish", "usr/share/fish/vendor_completions.d/tacho.fish"),
];

/// Files of the repository, and where they go.
const COPIES: [(&str, &str); 7] = [
    ("packaging/broker.toml", "etc/tacho/broker.toml"),
    ("packaging/systemd/tacho.service", "lib/systemd/system/tacho.service"),
    ("packaging/systemd/notify-reload.conf", "usr/share/doc/tacho/notify-reload.conf"),
    ("packaging/systemd/drain.conf", "usr/share/doc/tacho/drain.conf"),
    ("LICENSE", "usr/share/doc/tacho/copyright"),
    ("README.md", "usr/share/doc/tacho/README.md"),
    ("CHANGELOG.md", "usr/share/doc/tacho/CHANGELOG.md"),
];

/// A directory with all of them.
pub(super) struct Tree {
    root: PathBuf,
}

impl Tree {
    /// Makes it anew. What was stripped from the program goes to `debug`.
    pub(super) fn make(source: &Source, root: &Path, debug: &Path) -> Result<Self> {
        if root.exists() {
            fs::remove_dir_all(root).context("cannot remove an older directory")?;
        }
        let tree = Self { root: root.to_owned() };
        tree.program(source, debug)?;
        for (shell_name, path) in COMPLETIONS {
            let mut tacho = shell::command(source.program.path());
            let script = shell::output(tacho.args(["completions", shell_name]))?;
            fs::write(tree.place(path)?, script)?;
        }
        tree.manual(source)?;
        for (from, to) in COPIES {
            let text = fs::read(shell::root().join(from))
                .with_context(|| format!("cannot read {from}"))?;
            fs::write(tree.place(to)?, text)?;
        }
        set_modes(root)?;
        Ok(tree)
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// The path of a file, whose directory is made.
    fn place(&self, path: &str) -> Result<PathBuf> {
        let path = self.root.join(path);
        let folder = path.parent().unwrap_or(&self.root);
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(path)
    }

    /// Without symbols and tables for debuggers, which find them by the link in it.
    fn program(&self, source: &Source, debug: &Path) -> Result<()> {
        let program = self.place("usr/bin/tacho")?;
        let objcopy = |argument: &[&str], from: &Path, to: &Path| {
            shell::output(shell::command("objcopy").args(argument).args([from, to])).map(drop)
        };
        objcopy(&["--only-keep-debug"], source.program.path(), debug)?;
        let link = format!("--add-gnu-debuglink={}", debug.display());
        objcopy(&["--strip-all", &link], source.program.path(), &program)?;
        // Data only: the program is not started from there.
        fs::set_permissions(debug, fs::Permissions::from_mode(0o644))?;
        Ok(())
    }

    fn manual(&self, source: &Source) -> Result<()> {
        let folder = self.root.join("usr/share/man/man1");
        let mut tacho = shell::command(source.program.path());
        shell::output(tacho.args(["man", "--dir"]).arg(&folder))?;
        for page in fs::read_dir(&folder)? {
            gzip(&page?.path())?;
        }
        Ok(())
    }

    /// A compressed archive in which everything is in a directory of this name.
    pub(super) fn archive(&self, source: &Source, name: &str, path: &Path) -> Result<()> {
        let plain = path.with_extension("");
        let tar = Tar { epoch_s: source.epoch_s, owner: 0, inside: Some(name) };
        tar.archive(&self.root, &plain)?;
        gzip(&plain)
    }
}
