//! JMeter's text with `${variable}` and `${__function(a, b)}` in it.

/// A text in pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct JmeterText(pub(super) Vec<JmeterPiece>);

/// A piece of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum JmeterPiece {
    /// Literal text.
    Text(String),
    /// `${name}` or `${name(arguments)}`.
    Reference {
        /// Variable, or function when it begins with `__`.
        name: String,
        /// The text in the brackets.
        arguments: Vec<JmeterText>,
        /// As written.
        written: String,
    },
}

/// Deepest nesting of references.
const DEPTH_MAX: usize = 50;

impl JmeterText {
    /// Cuts a text at its references. `\$`, `\,` and `\\` stand for the character behind the
    /// backslash; a `$` that no brace follows stays, so that `$${x}` is `$` and the value of `x`.
    ///
    /// # Errors
    /// A sentence, when a brace or bracket is not closed.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut parser = Parser { text, at: 0, depth: 0 };
        parser.pieces(&[])
    }
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn take(&mut self) -> Option<char> {
        let next = self.rest().chars().next()?;
        self.at += next.len_utf8();
        Some(next)
    }

    /// Pieces up to one of `ends`, which stays.
    fn pieces(&mut self, ends: &[char]) -> Result<JmeterText, String> {
        let mut pieces = Vec::new();
        let mut plain = String::new();
        loop {
            if self.rest().starts_with("${") {
                if !plain.is_empty() {
                    pieces.push(JmeterPiece::Text(std::mem::take(&mut plain)));
                }
                pieces.push(self.reference()?);
                continue;
            }
            match self.rest().chars().next() {
                None => break,
                Some(next) if ends.contains(&next) => break,
                Some('\\') => {
                    self.take();
                    match self.take() {
                        Some(escaped @ ('$' | ',' | '\\')) => plain.push(escaped),
                        Some(other) => plain.extend(['\\', other]),
                        None => plain.push('\\'),
                    }
                }
                Some(_) => plain.extend(self.take()),
            }
        }
        if !plain.is_empty() {
            pieces.push(JmeterPiece::Text(plain));
        }
        Ok(JmeterText(pieces))
    }

    /// From `${` to its `}`.
    fn reference(&mut self) -> Result<JmeterPiece, String> {
        let start = self.at;
        let complaint = |what: &str| format!("'{}': {what}", &self.text[start..]);
        let unclosed = complaint("a '${' has no '}'");
        let trailing = complaint("a ')' must be followed by '}'");
        if self.depth == DEPTH_MAX {
            return Err(complaint("too many references within references"));
        }
        self.depth += 1;
        self.at += 2;
        let Some(length) = self.rest().find(['(', '}']) else { return Err(unclosed) };
        let name = self.rest()[..length].trim().to_owned();
        self.at += length;
        let mut arguments = Vec::new();
        if self.take() == Some('(') {
            loop {
                arguments.push(self.pieces(&[',', ')'])?);
                match self.take() {
                    Some(',') => {}
                    Some(_) => break,
                    None => return Err(unclosed),
                }
            }
            if self.take() != Some('}') {
                return Err(trailing);
            }
        }
        if arguments.len() == 1 && arguments[0].0.is_empty() {
            arguments.clear();
        }
        self.depth -= 1;
        Ok(JmeterPiece::Reference {
            name,
            arguments,
            written: self.text[start..self.at].to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> JmeterPiece {
        JmeterPiece::Text(text.to_owned())
    }

    fn parsed(text: &str) -> Vec<JmeterPiece> {
        JmeterText::parse(text).expect("parses").0
    }

    fn name(piece: &JmeterPiece) -> &str {
        match piece {
            JmeterPiece::Reference { name, .. } => name,
            JmeterPiece::Text(text) => panic!("{text} is text"),
        }
    }

    #[test]
    fn texts_are_cut_at_references() {
        let pieces = parsed("test/${__machineName()}/${__threadNum}");
        assert_eq!(pieces[0], text("test/"));
        assert_eq!(name(&pieces[1]), "__machineName");
        assert_eq!(pieces[2], text("/"));
        assert_eq!(name(&pieces[3]), "__threadNum");
        assert_eq!(parsed(""), []);
        assert_eq!(name(&parsed("${qos}")[0]), "qos");
    }

    #[test]
    fn functions_have_arguments() {
        let pieces = parsed(r"${__f(${a}, SEC\,x,b${__g(1,2)})}!");
        let [JmeterPiece::Reference { name: f, arguments, .. }, end] = &pieces[..] else {
            panic!()
        };
        assert_eq!((f.as_str(), end), ("__f", &text("!")));
        assert_eq!(arguments.len(), 3);
        assert_eq!(name(&arguments[0].0[0]), "a");
        assert_eq!(arguments[1].0, [text(" SEC,x")]);
        assert_eq!(name(&arguments[2].0[1]), "__g");
    }

    #[test]
    fn a_second_dollar_is_text() {
        let pieces = parsed("$${ramp}");
        assert_eq!(pieces[0], text("$"));
        assert_eq!(name(&pieces[1]), "ramp");
        assert_eq!(parsed("$share/group/x"), [text("$share/group/x")]);
        assert_eq!(parsed(r"\${x}"), [text("${x}")]);
        assert_eq!(parsed(r"a\b"), [text(r"a\b")]);
    }

    #[test]
    fn unclosed_references_are_refused() {
        for bad in ["${x", "${__f(1", "${__f(1)x}", "${__f(${x)}"] {
            assert!(JmeterText::parse(bad).is_err(), "{bad}");
        }
        assert!(JmeterText::parse(&"${__f(".repeat(1000)).is_err());
    }
}
