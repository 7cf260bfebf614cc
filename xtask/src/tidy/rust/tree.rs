//! The modules of a crate: what they define, import and use.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use syn::{Item, ItemMod};

use super::collect::{self, Import, UsedPath};

/// Rust files by name.
pub(super) struct Sources<'a> {
    files: BTreeMap<&'a str, &'a str>,
}

impl<'a> Sources<'a> {
    pub(super) fn new(files: &[(&'a str, &'a str)]) -> Self {
        Self { files: files.iter().copied().collect() }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.files.iter().map(|(name, text)| (*name, *text))
    }

    /// The root files of the workspace's libraries and programs.
    pub(super) fn crate_roots(&self) -> Vec<&'a str> {
        let is_root = |name: &&str| name.ends_with("/src/lib.rs") || name.ends_with("/src/main.rs");
        self.files.keys().copied().filter(is_root).collect()
    }

    pub(super) fn parse(&self, name: &str) -> Result<syn::File> {
        let text = self.files.get(name).with_context(|| format!("there is no {name}"))?;
        syn::parse_file(text).map_err(|error| {
            let line = error.span().start().line;
            anyhow::anyhow!("{name}:{line}: {error}")
        })
    }
}

/// The crate that a file belongs to: the name of its folder.
pub(in crate::tidy) fn crate_name(file: &str) -> &str {
    let path = file.strip_prefix("crates/").unwrap_or(file);
    path.split('/').next().unwrap_or(path)
}

/// A crate as its compiler sees it without `cfg(test)`.
pub(super) struct Crate {
    pub(super) name: String,
    /// The root comes first.
    pub(super) modules: Vec<Module>,
    /// Files of modules that are compiled for tests only.
    pub(super) test_files: BTreeSet<String>,
}

/// One module, in a file or inline.
pub(super) struct Module {
    /// Below the crate's root.
    pub(super) path: Vec<String>,
    pub(super) file: String,
    pub(super) parent: Option<usize>,
    pub(super) children: BTreeMap<String, usize>,
    /// Names of the items defined here, but for modules.
    pub(super) items: BTreeSet<String>,
    /// Names of the types among them with their lines; also those inside functions.
    pub(super) types: Vec<(String, usize)>,
    pub(super) imports: Vec<Import>,
    pub(super) paths: Vec<UsedPath>,
}

impl Crate {
    pub(super) fn read(root: &str, sources: &Sources<'_>) -> Result<Self> {
        let mut made = Self {
            name: crate_name(root).to_owned(),
            modules: Vec::new(),
            test_files: BTreeSet::new(),
        };
        let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
        let file = sources.parse(root)?;
        made.add(Vec::new(), None, root, &folder, &file.items, sources)?;
        Ok(made)
    }

    /// Adds a module and those below it. `folder` is where files of its children lie.
    fn add(
        &mut self,
        path: Vec<String>,
        parent: Option<usize>,
        file: &str,
        folder: &str,
        items: &[Item],
        sources: &Sources<'_>,
    ) -> Result<usize> {
        let number = self.modules.len();
        let collected = collect::module(items);
        self.modules.push(Module {
            path: path.clone(),
            file: file.to_owned(),
            parent,
            children: BTreeMap::new(),
            items: collected.items,
            types: collected.types,
            imports: collected.imports,
            paths: collected.paths,
        });
        for item in items {
            let Item::Mod(module) = item else { continue };
            let name = module.ident.to_string();
            if collect::is_test_only(&module.attrs) {
                self.note_tests(module, &format!("{folder}/{name}"), sources)?;
                continue;
            }
            let mut path = path.clone();
            path.push(name.clone());
            let below = format!("{folder}/{name}");
            let child = match &module.content {
                Some((_, items)) => self.add(path, Some(number), file, &below, items, sources)?,
                None => {
                    let file = file_of(&below, sources)?;
                    let parsed = sources.parse(&file)?;
                    self.add(path, Some(number), &file, &below, &parsed.items, sources)?
                }
            };
            if let Some(module) = self.modules.get_mut(number) {
                module.children.insert(name, child);
            }
        }
        Ok(number)
    }

    /// Notes the files of a module for tests, and of those below it.
    fn note_tests(&mut self, module: &ItemMod, below: &str, sources: &Sources<'_>) -> Result<()> {
        if module.content.is_none() {
            self.test_files.insert(file_of(below, sources)?);
        }
        let folder = format!("{below}/");
        let inside = sources.iter().map(|(name, _)| name).filter(|name| name.starts_with(&folder));
        self.test_files.extend(inside.map(str::to_owned));
        Ok(())
    }
}

/// The file of a module: `below.rs` or `below/mod.rs`.
fn file_of(below: &str, sources: &Sources<'_>) -> Result<String> {
    let candidates = [format!("{below}.rs"), format!("{below}/mod.rs")];
    let found = candidates.into_iter().find(|name| sources.files.contains_key(name.as_str()));
    found.with_context(|| format!("there is no {below}.rs"))
}
