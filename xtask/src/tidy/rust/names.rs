//! Where a path leads: to the module that defines what it names.

use super::tree::Crate;

/// Imports that lead to each other are given up after this many steps.
const STEPS_MAX: usize = 16;

/// What a path names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Module(usize),
    /// An item, by the module that defines it.
    Item(usize),
}

impl Crate {
    /// Follows a path that is written in the module `from`, through re-exports, to the definition;
    /// `None` when it leaves the crate or names something local.
    pub(super) fn resolve(&self, from: usize, path: &[String]) -> Option<Target> {
        self.follow(from, path, STEPS_MAX)
    }

    fn follow(&self, from: usize, path: &[String], steps: usize) -> Option<Target> {
        let steps = steps.checked_sub(1)?;
        let mut at = from;
        let mut rest = path;
        let mut is_anchored = false;
        while let [first, behind @ ..] = rest {
            at = match first.as_str() {
                "crate" => 0,
                "self" => at,
                "super" => self.modules.get(at)?.parent?,
                _ => break,
            };
            is_anchored = true;
            rest = behind;
        }
        let Some((first, behind)) = rest.split_first() else {
            return is_anchored.then_some(Target::Module(at));
        };
        match self.look_up(at, first, !behind.is_empty(), steps)? {
            Target::Item(module) => Some(Target::Item(module)),
            Target::Module(module) if behind.is_empty() => Some(Target::Module(module)),
            Target::Module(module) => {
                // Anchored: a name that is not there is not another crate's.
                let mut inside = vec!["self".to_owned()];
                inside.extend_from_slice(behind);
                self.follow(module, &inside, steps)
            }
        }
    }

    /// A name inside a module. Modules and items may have the same name: `leads_on` says that a
    /// module is meant if there is one.
    fn look_up(&self, at: usize, name: &str, leads_on: bool, steps: usize) -> Option<Target> {
        let module = self.modules.get(at)?;
        let child = module.children.get(name).map(|child| Target::Module(*child));
        let item = module.items.contains(name).then_some(Target::Item(at));
        let named = module.imports.iter().filter(|import| import.name.as_deref() == Some(name));
        // An import cannot lead to itself: `use a::a` in a module without an `a` is another crate.
        let imported = named.filter_map(|import| match import.path.first() {
            Some(first) if first == name && child.is_none() => None,
            _ => self.follow(at, &import.path, steps),
        });
        let imported: Vec<Target> = imported.collect();
        let is_module = |target: &&Target| matches!(target, Target::Module(_));
        let found = match leads_on {
            true => child
                .or_else(|| imported.iter().find(is_module).copied())
                .or_else(|| imported.first().copied())
                .or(item),
            false => item
                .or_else(|| imported.iter().find(|target| !is_module(target)).copied())
                .or(child)
                .or_else(|| imported.first().copied()),
        };
        found.or_else(|| {
            let globs = module.imports.iter().filter(|import| import.name.is_none());
            let mut inside = globs.filter_map(|glob| self.follow(at, &glob.path, steps));
            inside.find_map(|target| match target {
                Target::Module(from) if from != at => {
                    self.look_up(from, name, leads_on, steps.checked_sub(1)?)
                }
                // Variants of an enum are not listed.
                _ => None,
            })
        })
    }
}
