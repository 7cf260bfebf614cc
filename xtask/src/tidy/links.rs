//! Links between documents: to files that are there, and to headings that they have.

use std::collections::{BTreeSet, HashMap};

use super::Finding;
use super::source::prose;

/// The documents of the repository, and everything that they may lead to.
pub(super) struct Links<'a> {
    /// All files, by their names.
    files: BTreeSet<&'a str>,
    /// Headings of each document, as links name them.
    anchors: HashMap<&'a str, BTreeSet<String>>,
}

impl<'a> Links<'a> {
    /// Of files with these names; `documents` are those with text.
    pub(super) fn new(
        names: impl IntoIterator<Item = &'a str>,
        documents: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        let anchors = documents.into_iter().map(|(name, text)| (name, anchors(text)));
        Self { files: names.into_iter().collect(), anchors: anchors.collect() }
    }

    /// Checks the links of one document.
    pub(super) fn check(&self, name: &str, text: &str, findings: &mut Vec<Finding>) {
        for (line, target) in targets(text) {
            if let Err(complaint) = self.look(name, target) {
                findings.push(Finding::new(name, line, format!("link to {target}: {complaint}")));
            }
        }
    }

    fn look(&self, from: &str, target: &str) -> Result<(), String> {
        let is_foreign = ["http://", "https://", "mailto:"].iter().any(|s| target.starts_with(s));
        if is_foreign {
            return Ok(());
        }
        let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
        let file = match path {
            "" => from.to_owned(),
            path => resolved(from, path).ok_or("it leads out of the repository")?,
        };
        let folder = format!("{file}/");
        let next = self.files.range(folder.as_str()..).next();
        let is_folder = next.is_some_and(|next| next.starts_with(&folder));
        if !self.files.contains(file.as_str()) && !is_folder {
            return Err(format!("there is no {file}"));
        }
        match self.anchors.get(file.as_str()) {
            Some(anchors) if !anchor.is_empty() && !anchors.contains(anchor) => {
                Err(format!("{file} has no such heading"))
            }
            None if is_line(anchor) => Ok(()),
            None if !anchor.is_empty() => Err(format!("{file} has no headings")),
            _ => Ok(()),
        }
    }
}

/// Does it mean a line, as `L12` does?
fn is_line(anchor: &str) -> bool {
    let number = anchor.strip_prefix('L').map(str::parse::<u32>);
    number.is_some_and(|number| number.is_ok_and(|number| number > 0))
}

/// A path as seen from the folder of a file; `None` when it leaves the repository.
fn resolved(from: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Where links lead, with their lines.
fn targets(text: &str) -> Vec<(usize, &str)> {
    let mut targets = Vec::new();
    for (number, line) in prose(text) {
        let mut rest = line;
        while let Some((_, behind)) = rest.split_once("](") {
            let Some((target, behind)) = behind.split_once(')') else { break };
            // Behind a space stands a title.
            targets.push((number, target.split(' ').next().unwrap_or_default()));
            rest = behind;
        }
    }
    targets
}

/// The headings of a document as links name them; those that come again have a number.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    for (_, line) in prose(text) {
        let title = line.trim_start_matches('#');
        if title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let slug = slug(title.trim());
        let again = (1..).map(|number| format!("{slug}-{number}"));
        let mut names = std::iter::once(slug.clone()).chain(again);
        // It ends: the document has fewer headings than there are numbers.
        let free = names.find(|name| !seen.contains(name));
        seen.extend(free);
    }
    seen
}

/// A heading as a link names it: letters, digits, `-` and `_` stay, spaces become `-`.
fn slug(title: &str) -> String {
    let mut shown = String::new();
    let mut rest = title;
    // Of a link its words count.
    while let Some((before, behind)) = rest.split_once("](") {
        shown.push_str(before);
        rest = behind.split_once(')').map_or("", |(_, rest)| rest);
    }
    shown.push_str(rest);
    let kept = shown.to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || "-_ ".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUIDE: &str = "# The guide\n\n## Actions: `[[actions]]`\n\nsee [below](#more)\n\n## More\n\
        \n## More\n\n```sh\n# no heading\ncat [x](nowhere.md)\n```\n\n## 命令 and [links](a.md)\n";

    fn complaints(links: &[&str]) -> Vec<String> {
        let text: String = links.iter().map(|link| format!("a [b]({link}) c\n")).collect();
        let names = ["docs/guide.md", "docs/a.md", "docs/pictures/one.svg", "src/x.rs"];
        let links = Links::new(names, [("docs/guide.md", GUIDE), ("docs/a.md", "")]);
        let mut findings = Vec::new();
        links.check("docs/guide.md", GUIDE, &mut findings);
        assert_eq!(findings, []);
        links.check("docs/a.md", &text, &mut findings);
        findings.into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn links_that_lead_somewhere_are_fine() {
        let good = [
            "https://example.org/x.md#y",
            "guide.md",
            "./guide.md#actions-actions",
            "guide.md#more-1",
            "guide.md#命令-and-links",
            "pictures",
            "pictures/one.svg",
            "../src/x.rs",
            "../src/x.rs#L12",
        ];
        assert_eq!(complaints(&good), Vec::<String>::new());
    }

    #[test]
    fn links_into_nothing_are_found() {
        let bad = [
            ("gone.md", "there is no docs/gone.md"),
            ("picture", "there is no docs/picture"),
            ("guide.md#no-heading", "docs/guide.md has no such heading"),
            ("guide.md#more-2", "docs/guide.md has no such heading"),
            ("../src/x.rs#top", "src/x.rs has no headings"),
            ("../src/x.rs#L0", "src/x.rs has no headings"),
            ("../../elsewhere.md", "it leads out of the repository"),
            ("#nothing", "docs/a.md has no such heading"),
        ];
        for (link, complaint) in bad {
            assert_eq!(complaints(&[link]), [format!("link to {link}: {complaint}")]);
        }
    }
}
