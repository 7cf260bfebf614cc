//! As much of HOCON as EMQX writes: objects, dotted keys, texts, lists, comments. What is malformed
//! is named, and reading goes on behind it where that makes sense.

/// Objects within each other.
const DEPTH_MAX: usize = 32;

/// A value with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HoconEntry {
    /// The keys that lead to it.
    pub(super) path: Vec<String>,
    pub(super) value: HoconValue,
    pub(super) line: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HoconValue {
    /// A text or a number.
    Text(String),
    List(Vec<String>),
}

/// Something malformed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HoconFault {
    pub(super) line: usize,
    pub(super) what: String,
}

/// All values of a text, and what is malformed in it.
///
/// # Errors
/// It cannot be read any further.
pub(super) fn parse(text: &str) -> Result<(Vec<HoconEntry>, Vec<HoconFault>), HoconFault> {
    let mut reader = HoconReader { rest: text, line: 1, entries: Vec::new(), faults: Vec::new() };
    reader.object(&mut Vec::new(), 0)?;
    Ok((reader.entries, reader.faults))
}

struct HoconReader<'a> {
    rest: &'a str,
    line: usize,
    entries: Vec<HoconEntry>,
    faults: Vec<HoconFault>,
}

const TYPOGRAPHIC: [char; 4] = ['\u{201c}', '\u{201d}', '\u{201e}', '\u{ff02}'];

impl HoconReader<'_> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn skip(&mut self, bytes: usize) {
        let (skipped, rest) = self.rest.split_at(bytes);
        self.line += skipped.matches('\n').count();
        self.rest = rest;
    }

    fn take(&mut self, expected: char) -> bool {
        let is_next = self.peek() == Some(expected);
        if is_next {
            self.skip(expected.len_utf8());
        }
        is_next
    }

    fn fault(&self, what: impl Into<String>) -> HoconFault {
        HoconFault { line: self.line, what: what.into() }
    }

    /// Spaces, ends of lines, commas and comments.
    fn skip_between(&mut self) {
        loop {
            let is_blank = |c: char| c.is_whitespace() || c == ',' || c == '\u{feff}';
            let blank = self.rest.find(|c| !is_blank(c)).unwrap_or(self.rest.len());
            self.skip(blank);
            if !self.rest.starts_with('#') && !self.rest.starts_with("//") {
                return;
            }
            self.skip_line();
        }
    }

    fn skip_spaces(&mut self) {
        let is_end = |c: char| !c.is_whitespace() || c == '\n';
        let spaces = self.rest.find(is_end).unwrap_or(self.rest.len());
        self.skip(spaces);
    }

    fn skip_line(&mut self) {
        let end = self.rest.find('\n').unwrap_or(self.rest.len());
        self.skip(end);
    }

    /// The inside of an object, up to its brace or, of the outermost one, to the end.
    fn object(&mut self, path: &mut Vec<String>, depth: usize) -> Result<(), HoconFault> {
        if depth > DEPTH_MAX {
            return Err(self.fault("objects within each other, too deep"));
        }
        loop {
            self.skip_between();
            match self.peek() {
                None if depth == 0 => return Ok(()),
                None => return Err(self.fault("the file ends within an object: a } is missing")),
                // The whole file may be one object.
                Some('{') if depth == 0 => {
                    self.skip(1);
                    self.object(path, depth + 1)?;
                }
                Some('}') if depth > 0 => {
                    self.skip(1);
                    return Ok(());
                }
                Some(_) => self.entry(path, depth)?,
            }
        }
    }

    fn entry(&mut self, path: &mut Vec<String>, depth: usize) -> Result<(), HoconFault> {
        let before = path.len();
        if !self.key(path) {
            let line = self.rest.lines().next().unwrap_or_default().trim();
            let shown: String = line.chars().take(40).collect();
            self.faults.push(self.fault(format!("`{}` is no key", shown.escape_debug())));
            self.skip_line();
            path.truncate(before);
            // A brace of what cannot be read must not end another object.
            return match line.contains(['{', '}']) {
                true => Err(self.fault("what follows cannot be told apart: correct this line")),
                false => Ok(()),
            };
        }
        self.skip_spaces();
        let has_sign = self.take('=') || self.take(':');
        let result = if has_sign {
            self.skip_between();
            self.value(path, depth)
        } else if self.take('{') {
            self.object(path, depth + 1)
        } else {
            let key = path[before..].join(".");
            self.faults.push(self.fault(format!("`{key}` has no value: write `{key} = ...`")));
            self.skip_line();
            Ok(())
        };
        path.truncate(before);
        result
    }

    /// A key, perhaps of several parts with dots between them. False where there is none.
    fn key(&mut self, path: &mut Vec<String>) -> bool {
        loop {
            let part = if self.peek() == Some('"') {
                self.quoted()
            } else {
                let is_end = |c: char| !c.is_alphanumeric() && !"_-".contains(c);
                let end = self.rest.find(is_end).unwrap_or(self.rest.len());
                let part = self.rest[..end].to_owned();
                self.skip(end);
                Some(part).filter(|part| !part.is_empty())
            };
            let Some(part) = part else { return false };
            path.push(part);
            if !self.take('.') {
                return true;
            }
        }
    }

    fn value(&mut self, path: &mut Vec<String>, depth: usize) -> Result<(), HoconFault> {
        let line = self.line;
        let value = match self.peek() {
            Some('{') => {
                self.skip(1);
                return self.object(path, depth + 1);
            }
            Some('[') => HoconValue::List(self.list()?),
            Some('"') => HoconValue::Text(self.closed_text()?),
            _ => HoconValue::Text(self.unquoted(path, &[',', '}', '\n'])),
        };
        self.entries.push(HoconEntry { path: path.clone(), value, line });
        self.skip_spaces();
        let is_end = |c: char| "\n,}#/".contains(c);
        if self.peek().is_some_and(|c| !is_end(c)) {
            let key = path.join(".");
            self.faults.push(self.fault(format!("more follows the value of `{key}`: left out")));
            let end = self.rest.find(['\n', ',', '}']).unwrap_or(self.rest.len());
            self.skip(end);
        }
        Ok(())
    }

    fn list(&mut self) -> Result<Vec<String>, HoconFault> {
        self.skip(1);
        let mut items = Vec::new();
        loop {
            self.skip_between();
            match self.peek() {
                None => return Err(self.fault("the file ends within a list: a ] is missing")),
                Some(']') => {
                    self.skip(1);
                    return Ok(items);
                }
                Some('{' | '[') => {
                    return Err(self.fault("a list of objects or lists cannot be read here"));
                }
                Some('"') => items.push(self.closed_text()?),
                Some(_) => {
                    let item = self.unquoted(&[], &[',', ']', '\n']);
                    if item.is_empty() {
                        return Err(self.fault("a value of the list cannot be read"));
                    }
                    items.push(item);
                }
            }
        }
    }

    /// A text between quotation marks.
    fn closed_text(&mut self) -> Result<String, HoconFault> {
        let missing = "a quotation mark is missing at the end of a text";
        self.quoted().ok_or_else(|| self.fault(missing))
    }

    /// A text between quotation marks; `None` where the last one is missing.
    fn quoted(&mut self) -> Option<String> {
        const THREE: &str = "\"\"\"";
        if let Some(inner) = self.rest.strip_prefix(THREE) {
            let end = inner.find(THREE)?;
            let text = inner[..end].to_owned();
            self.skip(end + 2 * THREE.len());
            return Some(text);
        }
        let mut text = String::new();
        let mut chars = self.rest.char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.skip(at + 1);
                    return Some(text);
                }
                '\n' => return None,
                '\\' => match chars.next()?.1 {
                    'n' => text.push('\n'),
                    't' => text.push('\t'),
                    other => text.push(other),
                },
                other => text.push(other),
            }
        }
        None
    }

    /// A text without quotation marks. In HOCON `${x}` there is a reference.
    fn unquoted(&mut self, path: &[String], ends: &[char]) -> String {
        if let Some(text) = self.in_typographic_marks(path) {
            return text;
        }
        let mut end = self.rest.len();
        let mut is_reference = false;
        for (at, c) in self.rest.char_indices() {
            if is_reference && c == '}' {
                is_reference = false;
                continue;
            }
            let rest = &self.rest[at..];
            is_reference |= rest.starts_with("${");
            if ends.contains(&c) || rest.starts_with('#') || rest.starts_with("//") {
                end = at;
                break;
            }
        }
        let text = self.rest[..end].trim().to_owned();
        let key = path.join(".");
        if text.contains("${") {
            let what = format!(
                "`{key} = {text}` has no quotation marks: HOCON takes it for a reference; it is \
                 read as \"{text}\""
            );
            self.faults.push(self.fault(what));
        }
        self.skip(end);
        text
    }

    /// A text between quotation marks as books have them, which a word processor has made.
    fn in_typographic_marks(&mut self, path: &[String]) -> Option<String> {
        let line = self.rest.lines().next()?;
        let inner = line.strip_prefix(TYPOGRAPHIC)?;
        let end = inner.find(TYPOGRAPHIC)?;
        let text = inner[..end].to_owned();
        let key = path.join(".");
        let what = format!("`{key}` has typographic quotation marks: it is read as \"{text}\"");
        self.faults.push(self.fault(what));
        let after = inner[end..].chars().next().map_or(0, char::len_utf8);
        self.skip(line.len() - inner.len() + end + after);
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(text: &str) -> Vec<(String, HoconValue, usize)> {
        let (entries, faults) = parse(text).expect("can be read");
        assert!(faults.is_empty(), "{faults:?}");
        entries.into_iter().map(|entry| (entry.path.join("."), entry.value, entry.line)).collect()
    }

    #[test]
    fn objects_dotted_keys_texts_and_lists_are_read() {
        let text = "# a comment\na.b { c = 1s, \"d.e\" : \"x \\\"y\\\" # z\" // more\n}\n\
                    list = [a, \"b\" # c\n d]\nlong = \"\"\"two\nlines\"\"\"\nnone {}\n";
        let of = |text: &str| HoconValue::Text(text.to_owned());
        let list = HoconValue::List(["a", "b", "d"].map(str::to_owned).into());
        let expected = [
            ("a.b.c", of("1s"), 2),
            ("a.b.d.e", of("x \"y\" # z"), 2),
            ("list", list, 4),
            ("long", of("two\nlines"), 6),
        ];
        let expected = expected.map(|(path, value, line)| (path.to_owned(), value, line));
        assert_eq!(entries(text), expected);
        assert_eq!(entries("{ a = b }"), [("a".to_owned(), of("b"), 1)]);
    }

    #[test]
    fn what_is_malformed_is_named_with_its_line_and_the_rest_is_read() {
        let text = "a = ${payload}\nb = \u{201c}x\u{201d}\n= 7\nc\nd = \"e\" f\ng = 1\n";
        let (entries, faults) = parse(text).expect("can be read");
        let lines: Vec<usize> = faults.iter().map(|fault| fault.line).collect();
        assert_eq!(lines, [1, 2, 3, 4, 5], "{faults:?}");
        let values: Vec<_> = entries.iter().map(|entry| entry.value.clone()).collect();
        let of = |text: &str| HoconValue::Text(text.to_owned());
        assert_eq!(values, [of("${payload}"), of("x"), of("e"), of("1")]);
        for (text, line) in [
            ("a {\n b = 1\n", 3),
            ("a = \"b\n", 1),
            ("a = [\n1", 2),
            ("a = [{}]", 1),
            ("a = [1, \"b\n]", 1),
            ("?{ a = 1", 1),
        ] {
            assert_eq!(parse(text).expect_err(text).line, line, "{text}");
        }
        let deep = "a {".repeat(DEPTH_MAX + 2);
        assert!(parse(&deep).expect_err("is too deep").what.contains("too deep"));
    }

    #[test]
    fn no_text_makes_it_stall() {
        for seed in 0..2_000_u64 {
            let mut random = fastrand::Rng::with_seed(seed);
            let parts =
                ["a", "{", "}", "=", "\"", "[", "]", ",", "\n", "#", "${", "\\", ".", "\u{201c}"];
            let text: String = (0..40).map(|_| parts[random.usize(..parts.len())]).collect();
            let _ = parse(&text);
        }
    }
}
