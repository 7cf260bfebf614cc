//! Cycles between the modules of a folder.
//!
//! A use counts where the paths of user and definition part: when `report::html::page` uses an item
//! of `record::schema`, then `report` uses `record`. What a module and those above it use of each
//! other makes no arrow: they have no siblings in it.

use std::collections::{BTreeMap, BTreeSet};

use super::super::Finding;
use super::names::Target;
use super::tree::Crate;

/// Modules of one folder, by name, and what each uses of the others, with one place of it.
type Arrows<'a> = BTreeMap<(&'a str, &'a str), (&'a str, usize)>;

pub(super) fn check(found: &Crate, findings: &mut Vec<Finding>) {
    for (folder, arrows) in folders(found) {
        let place = match folder.is_empty() {
            true => "the crate's root".to_owned(),
            false => format!("`{}`", folder.join("::")),
        };
        for (user, used) in in_cycles(&arrows) {
            let Some((file, line)) = arrows.get(&(user, used)) else { continue };
            let way = way_back(&arrows, used, user).join(" -> ");
            let message =
                format!("cycle of modules in {place}: {user} -> {way}: move what both need below");
            findings.push(Finding::new(file, *line, message));
        }
    }
}

/// The arrows of each folder, by its path.
fn folders(found: &Crate) -> BTreeMap<&[String], Arrows<'_>> {
    let mut folders: BTreeMap<&[String], Arrows<'_>> = BTreeMap::new();
    for (number, module) in found.modules.iter().enumerate() {
        let imports = module.imports.iter().filter(|import| import.name.is_some());
        let imports = imports.map(|import| (&import.path, import.line));
        // A lone name is an import, which counts already, or comes by `*`, where only the names of
        // types are told from variables.
        let is_told = |segments: &[String]| match segments {
            [name] => name.starts_with(char::is_uppercase),
            _ => true,
        };
        let paths = module.paths.iter().filter(|path| is_told(&path.segments));
        let paths = paths.map(|path| (&path.segments, path.line));
        for (path, line) in imports.chain(paths) {
            let Some(Target::Item(definition)) = found.resolve(number, path) else { continue };
            let Some(definition) = found.modules.get(definition) else { continue };
            let pairs = module.path.iter().zip(&definition.path);
            let depth = pairs.take_while(|(user, used)| user == used).count();
            if let (Some(user), Some(used)) = (module.path.get(depth), definition.path.get(depth)) {
                let arrows = folders.entry(&module.path[..depth]).or_default();
                arrows.entry((user, used)).or_insert((&module.file, line));
            }
        }
    }
    folders
}

/// Arrows from whose end a way leads back to their beginning.
fn in_cycles<'a>(arrows: &Arrows<'a>) -> Vec<(&'a str, &'a str)> {
    let all = arrows.keys().copied();
    all.filter(|(user, used)| !way_back(arrows, used, user).is_empty()).collect()
}

/// The shortest way along the arrows, with both ends; empty when there is none.
fn way_back<'a>(arrows: &Arrows<'a>, from: &'a str, to: &'a str) -> Vec<&'a str> {
    let mut ways = vec![vec![from]];
    let mut seen = BTreeSet::from([from]);
    while !ways.is_empty() {
        let mut longer = Vec::new();
        for way in ways {
            let end = way.last().copied().unwrap_or(from);
            if end == to {
                return way;
            }
            for (_, next) in arrows.keys().filter(|(user, _)| *user == end) {
                if seen.insert(next) {
                    let mut way = way.clone();
                    way.push(next);
                    longer.push(way);
                }
            }
        }
        ways = longer;
    }
    Vec::new()
}
