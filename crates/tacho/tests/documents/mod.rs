//! Reads the documents: blocks, commands, words.

use std::path::{Path, PathBuf};

/// A document.
pub(crate) struct Document {
    /// Its file name.
    pub(crate) name: String,
    pub(crate) text: String,
}

/// A command in a block, or a file that a block writes.
pub(crate) struct Line {
    pub(crate) line: String,
    /// Name and content, of `cat > NAME <<'EOF'`.
    pub(crate) file: Option<(String, String)>,
}

/// README.md, README.zh.md, docs/*.md and docs/results/*/README.md.
pub(crate) fn documents() -> Vec<Document> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut paths: Vec<PathBuf> =
        ["README.md", "README.zh.md"].map(|name| root.join(name)).to_vec();
    let entries = std::fs::read_dir(root.join("docs")).expect("the folder is there");
    let mut inside: Vec<_> = entries.map(|entry| entry.expect("reads").path()).collect();
    inside.sort();
    paths.extend(inside.into_iter().filter(|path| path.extension().is_some_and(|e| e == "md")));
    paths.extend(
        ["guide", "bifromq"].map(|report| root.join("docs/results").join(report).join("README.md")),
    );
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path);
        let text = text.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // Indices of folders are no other README.
        let folder = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
        let is_index = name == "README.md" && path.parent() != Some(root.as_path());
        Document {
            name: if is_index { format!("{folder}/{name}") } else { name.into_owned() },
            text,
        }
    };
    paths.into_iter().map(read).collect()
}

/// The blocks of a language.
fn blocks<'t>(text: &'t str, language: &str) -> Vec<&'t str> {
    let fence = format!("```{language}\n");
    text.split(&fence).skip(1).filter_map(|rest| rest.split("\n```").next()).collect()
}

/// The scenario of that name among the blocks.
pub(crate) fn toml_called(text: &str, name: &str) -> Option<String> {
    let head = format!("name = \"{name}\"\n");
    blocks(text, "toml").into_iter().find(|block| block.starts_with(&head)).map(str::to_owned)
}

/// The commands of all `sh` blocks: whole lines, without comments.
pub(crate) fn commands(text: &str) -> Vec<Line> {
    let mut found = Vec::new();
    for block in blocks(text, "sh") {
        let mut lines = block.lines();
        while let Some(first) = lines.next() {
            let mut line = first.trim().to_owned();
            while let Some(part) = line.strip_suffix('\\') {
                line = format!("{}{}", part, lines.next().unwrap_or_default().trim());
            }
            if line.contains("<<") {
                let content: Vec<&str> = lines.by_ref().take_while(|line| *line != "EOF").collect();
                let name = line.split(' ').nth(2).unwrap_or_default().to_owned();
                // A script's own file, whose name the shell makes.
                if !name.contains('$') {
                    let content = content.join("\n") + "\n";
                    found.push(Line { line, file: Some((name, content)) });
                }
                continue;
            }
            let line = without_comment(&line);
            if !line.is_empty() {
                found.push(Line { line, file: None });
            }
        }
    }
    found
}

/// What stands in backticks in sentences, begins with `tacho`, and is no sketch.
pub(crate) fn inline(text: &str) -> Vec<String> {
    let mut sentences = String::new();
    let mut fenced = false;
    for line in text.lines() {
        if line.starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            sentences.push_str(line);
            sentences.push(' ');
        }
    }
    let spans = sentences.split('`').skip(1).step_by(2).map(str::to_owned);
    let is_command = |span: &String| {
        let sketched = ["…", "...", "|", "[", "version"].iter().any(|part| span.contains(part));
        span.starts_with("tacho ") && !sketched
    };
    spans.filter(is_command).map(|span| without_comment(&span)).collect()
}

/// Without a comment, a redirection or an ampersand at its end.
fn without_comment(line: &str) -> String {
    let mut quote = None;
    let mut end = line.len();
    for (at, c) in line.char_indices() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, '#' | '>') if at == 0 || line[..at].ends_with(' ') => {
                end = at;
                break;
            }
            _ => {}
        }
    }
    line[..end].trim().trim_end_matches('&').trim_end().to_owned()
}

/// The words of a line as a shell divides it: quotes hold words together.
pub(crate) fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, ' ') => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}
