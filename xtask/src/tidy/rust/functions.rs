//! The length of functions.

use std::collections::BTreeSet;

use anyhow::Result;
use proc_macro2::Ident;
use syn::visit::{self, Visit};
use syn::{Attribute, Block, ImplItemFn, Item, ItemFn, ItemImpl, ItemMod, Signature, TraitItemFn};

use super::super::Finding;
use super::collect::is_test_only;
use super::tree::{Crate, Sources};

/// Lines of a function, from its signature to the closing brace.
pub(super) const LINES_MAX: usize = 70;

/// Checks every file that is not for tests only.
pub(super) fn check(
    sources: &Sources<'_>,
    crates: &[Crate],
    findings: &mut Vec<Finding>,
) -> Result<()> {
    let tests: BTreeSet<&str> =
        crates.iter().flat_map(|found| &found.test_files).map(String::as_str).collect();
    for (name, _) in sources.iter() {
        let is_test = name.contains("/tests/") || name.ends_with("/tests.rs");
        if is_test || tests.contains(name) {
            continue;
        }
        let mut long = LongFunctions::default();
        long.visit_file(&sources.parse(name)?);
        for (function, line, lines) in long.found {
            let message = format!("`{function}` has {lines} lines, more than {LINES_MAX}");
            findings.push(Finding::new(name, line, message));
        }
    }
    Ok(())
}

#[derive(Default)]
struct LongFunctions {
    /// Of the `impl` or trait around.
    owner: Option<String>,
    /// Name, first line and lines.
    found: Vec<(String, usize, usize)>,
}

impl LongFunctions {
    fn look(&mut self, signature: &Signature, block: &Block) {
        let first = signature.fn_token.span.start().line;
        let lines = block.brace_token.span.close().end().line - first + 1;
        if lines > LINES_MAX {
            let name = match &self.owner {
                Some(owner) => format!("{owner}::{}", signature.ident),
                None => signature.ident.to_string(),
            };
            self.found.push((name, first, lines));
        }
    }

    fn inside(
        &mut self,
        owner: Option<&Ident>,
        attributes: &[Attribute],
        go: impl FnOnce(&mut Self),
    ) {
        if is_test_only(attributes) {
            return;
        }
        let before = std::mem::replace(&mut self.owner, owner.map(Ident::to_string));
        go(self);
        self.owner = before;
    }
}

impl<'ast> Visit<'ast> for LongFunctions {
    fn visit_item(&mut self, item: &'ast Item) {
        match item {
            Item::Impl(ItemImpl { attrs, self_ty, .. }) => {
                let name = match &**self_ty {
                    syn::Type::Path(path) => path.path.segments.last().map(|last| &last.ident),
                    _ => None,
                };
                self.inside(name, attrs, |this| visit::visit_item(this, item));
            }
            Item::Trait(found) => {
                self.inside(Some(&found.ident), &found.attrs, |this| visit::visit_item(this, item));
            }
            Item::Mod(ItemMod { attrs, .. }) => {
                self.inside(None, attrs, |this| visit::visit_item(this, item));
            }
            _ => visit::visit_item(self, item),
        }
    }

    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        if !is_test_only(&function.attrs) {
            self.look(&function.sig, &function.block);
            visit::visit_item_fn(self, function);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        if !is_test_only(&function.attrs) {
            self.look(&function.sig, &function.block);
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_trait_item_fn(&mut self, function: &'ast TraitItemFn) {
        if let Some(block) = &function.default {
            self.look(&function.sig, block);
        }
        visit::visit_trait_item_fn(self, function);
    }
}
