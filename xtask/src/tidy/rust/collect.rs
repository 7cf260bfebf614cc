//! What one module says: its items, imports and the paths that it uses, without `cfg(test)`.

use std::collections::BTreeSet;

use proc_macro2::{Ident, TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, ImplItem, Item, ItemMod, Macro, Meta, Path, Stmt, TraitItem, UseTree};

/// One name brought in by `use`.
pub(super) struct Import {
    /// As it is called here; `None` for all that the path contains (`*`).
    pub(super) name: Option<String>,
    pub(super) path: Vec<String>,
    pub(super) line: usize,
}

/// A path in code, with generic arguments left out.
pub(super) struct UsedPath {
    pub(super) segments: Vec<String>,
    pub(super) line: usize,
}

#[derive(Default)]
pub(super) struct Collected {
    pub(super) items: BTreeSet<String>,
    pub(super) types: Vec<(String, usize)>,
    pub(super) imports: Vec<Import>,
    pub(super) paths: Vec<UsedPath>,
}

/// Collects from the items of a module; modules among them are left to the caller.
pub(super) fn module(items: &[Item]) -> Collected {
    let mut collector = Collector::default();
    for item in items {
        if let Some(name) = defined_name(item) {
            collector.collected.items.insert(name.to_string());
        }
        collector.visit_item(item);
    }
    collector.collected
}

/// All identifiers of a file, or of its parts that are not for tests only.
pub(in crate::tidy) fn identifiers(file: &syn::File, with_tests: bool) -> BTreeSet<String> {
    let mut collector = Collector { descends: true, with_tests, ..Collector::default() };
    collector.visit_file(file);
    let Collected { imports, paths, .. } = collector.collected;
    let imported = imports.into_iter().flat_map(|import| import.path);
    imported.chain(paths.into_iter().flat_map(|path| path.segments)).collect()
}

/// True for what `cfg` leaves out of everything but tests, and for tests.
pub(super) fn is_test_only(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        if attribute.path().is_ident("test") {
            return true;
        }
        match &attribute.meta {
            Meta::List(list) if list.path.is_ident("cfg") => needs_test(list.tokens.clone()),
            _ => false,
        }
    })
}

/// Whether a condition holds in tests only: `test`, or `all` with it.
fn needs_test(condition: TokenStream) -> bool {
    let mut tokens = condition.into_iter();
    match (tokens.next(), tokens.next()) {
        (Some(TokenTree::Ident(name)), None) => name == "test",
        (Some(TokenTree::Ident(name)), Some(TokenTree::Group(group))) if name == "all" => {
            let mut parts: Vec<TokenStream> = vec![TokenStream::new()];
            for token in group.stream() {
                match (&token, parts.last_mut()) {
                    (TokenTree::Punct(comma), _) if comma.as_char() == ',' => {
                        parts.push(TokenStream::new());
                    }
                    (_, Some(part)) => part.extend([token]),
                    (_, None) => {}
                }
            }
            parts.into_iter().any(needs_test)
        }
        _ => false,
    }
}

fn defined_name(item: &Item) -> Option<&Ident> {
    match item {
        Item::Const(item) => Some(&item.ident),
        Item::Enum(item) => Some(&item.ident),
        Item::Fn(item) => Some(&item.sig.ident),
        Item::Macro(item) => item.ident.as_ref(),
        Item::Static(item) => Some(&item.ident),
        Item::Struct(item) => Some(&item.ident),
        Item::Trait(item) => Some(&item.ident),
        Item::TraitAlias(item) => Some(&item.ident),
        Item::Type(item) => Some(&item.ident),
        Item::Union(item) => Some(&item.ident),
        _ => None,
    }
    .filter(|_| !is_test_only(item_attributes(item)))
}

fn item_attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::TraitAlias(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

#[derive(Default)]
struct Collector {
    collected: Collected,
    /// Into modules, too.
    descends: bool,
    with_tests: bool,
}

impl Collector {
    fn is_left_out(&self, attributes: &[Attribute]) -> bool {
        !self.with_tests && is_test_only(attributes)
    }

    fn note_use(&mut self, before: &mut Vec<String>, tree: &UseTree) {
        let mut note = |name: Option<&Ident>, before: &[String], last: Option<&Ident>, line| {
            let mut path = before.to_vec();
            // `{self}` names the path before it.
            path.extend(last.filter(|last| *last != "self").map(Ident::to_string));
            let called = match name {
                Some(name) if name == "self" => path.last().cloned(),
                Some(name) => Some(name.to_string()),
                None => None,
            };
            self.collected.imports.push(Import { name: called, path, line });
        };
        match tree {
            UseTree::Name(name) => {
                note(Some(&name.ident), before, Some(&name.ident), line(&name.ident));
            }
            UseTree::Rename(name) => {
                note(Some(&name.rename), before, Some(&name.ident), line(&name.ident));
            }
            UseTree::Glob(glob) => note(None, before, None, glob.star_token.span.start().line),
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.note_use(before, &path.tree);
                before.pop();
            }
            UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.note_use(before, tree));
            }
        }
    }

    /// Paths inside a macro's arguments, as far as tokens tell them.
    fn note_tokens(&mut self, tokens: TokenStream) {
        let mut segments: Vec<String> = Vec::new();
        let mut at = 0;
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.note_path(&mut segments, at);
                        at = line(&name);
                    }
                    segments.push(name.to_string());
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Group(group) => {
                    self.note_path(&mut segments, at);
                    colons = 0;
                    self.note_tokens(group.stream());
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {
                    self.note_path(&mut segments, at);
                    colons = 0;
                }
            }
        }
        self.note_path(&mut segments, at);
    }

    fn note_path(&mut self, segments: &mut Vec<String>, line: usize) {
        if !segments.is_empty() {
            let segments = std::mem::take(segments);
            self.collected.paths.push(UsedPath { segments, line });
        }
    }

    fn note_type(&mut self, name: &Ident) {
        self.collected.types.push((name.to_string(), line(name)));
    }
}

impl<'ast> Visit<'ast> for Collector {
    fn visit_item(&mut self, item: &'ast Item) {
        if self.is_left_out(item_attributes(item)) {
            return;
        }
        match item {
            Item::Enum(item) => self.note_type(&item.ident),
            Item::Struct(item) => self.note_type(&item.ident),
            Item::Trait(item) => self.note_type(&item.ident),
            Item::Type(item) => self.note_type(&item.ident),
            Item::Union(item) => self.note_type(&item.ident),
            Item::Use(item) => {
                let mut before = Vec::new();
                if item.leading_colon.is_some() {
                    // No module is called that.
                    before.push("::".to_owned());
                }
                self.note_use(&mut before, &item.tree);
            }
            _ => {}
        }
        visit::visit_item(self, item);
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if self.descends {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        let attributes: &[Attribute] = match item {
            ImplItem::Const(item) => &item.attrs,
            ImplItem::Fn(item) => &item.attrs,
            ImplItem::Type(item) => &item.attrs,
            ImplItem::Macro(item) => &item.attrs,
            _ => &[],
        };
        if !self.is_left_out(attributes) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_trait_item(&mut self, item: &'ast TraitItem) {
        let attributes: &[Attribute] = match item {
            TraitItem::Const(item) => &item.attrs,
            TraitItem::Fn(item) => &item.attrs,
            TraitItem::Type(item) => &item.attrs,
            TraitItem::Macro(item) => &item.attrs,
            _ => &[],
        };
        if !self.is_left_out(attributes) {
            visit::visit_trait_item(self, item);
        }
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        if !self.is_left_out(&field.attrs) {
            visit::visit_field(self, field);
        }
    }

    fn visit_stmt(&mut self, statement: &'ast Stmt) {
        let attributes: &[Attribute] = match statement {
            Stmt::Local(local) => &local.attrs,
            Stmt::Macro(call) => &call.attrs,
            _ => &[],
        };
        if !self.is_left_out(attributes) {
            visit::visit_stmt(self, statement);
        }
    }

    fn visit_path(&mut self, path: &'ast Path) {
        let first = path.segments.first().map_or(0, |segment| line(&segment.ident));
        let mut segments: Vec<String> =
            path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if path.leading_colon.is_some() {
            segments.insert(0, "::".to_owned());
        }
        self.note_path(&mut segments, first);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        visit::visit_macro(self, call);
        self.note_tokens(call.tokens.clone());
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        visit::visit_attribute(self, attribute);
        if let Meta::List(list) = &attribute.meta {
            self.note_tokens(list.tokens.clone());
        }
    }
}

fn line(name: &Ident) -> usize {
    name.span().start().line
}
