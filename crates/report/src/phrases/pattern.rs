//! Sentences with names in place of their values: `there is no run '{id}'`.

/// A sentence with values; two braces stand for themselves.
#[derive(Debug)]
pub(super) struct Pattern {
    pieces: Vec<Piece>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece {
    Text(&'static str),
    Value(&'static str),
}

/// Values by their names.
pub(super) type Values<'t> = Vec<(&'static str, &'t str)>;

impl Pattern {
    pub(super) fn new(text: &'static str) -> Self {
        let mut pieces = Vec::new();
        let mut rest = text;
        let mut from = 0;
        while let Some(at) = rest.get(from..).and_then(|rest| rest.find('{')).map(|at| at + from) {
            match rest.get(at + 1..).and_then(value_name) {
                Some(name) => {
                    pieces.extend(rest.get(..at).filter(|text| !text.is_empty()).map(Piece::Text));
                    pieces.push(Piece::Value(name));
                    rest = rest.get(at + name.len() + 2..).unwrap_or_default();
                    from = 0;
                }
                None => from = at + 1,
            }
        }
        pieces.extend(Some(rest).filter(|text| !text.is_empty()).map(Piece::Text));
        Self { pieces }
    }

    /// Bytes that are the same in all such sentences: more of them say more surely which it is.
    pub(super) fn fixed_bytes(&self) -> usize {
        let length = |piece: &Piece| match piece {
            Piece::Text(text) => text.len(),
            Piece::Value(_) => 0,
        };
        self.pieces.iter().map(length).sum()
    }

    /// The values of `text`, if it is such a sentence; each is as short as it can be.
    pub(super) fn values<'t>(&self, text: &'t str) -> Option<Values<'t>> {
        let mut values = Values::new();
        let mut rest = text;
        let mut open = None;
        for (index, piece) in self.pieces.iter().enumerate() {
            match *piece {
                Piece::Value(name) => open = Some(name),
                Piece::Text(fixed) => {
                    let is_last = index + 1 == self.pieces.len();
                    let at = match (open, is_last) {
                        (None, _) => rest.starts_with(fixed).then_some(0)?,
                        (Some(_), true) => {
                            rest.len() - rest.strip_suffix(fixed).map(|_| fixed.len())?
                        }
                        (Some(_), false) => rest.find(fixed)?,
                    };
                    values.extend(open.take().zip(rest.get(..at)));
                    rest = rest.get(at + fixed.len()..)?;
                }
            }
        }
        values.extend(open.take().map(|name| (name, std::mem::take(&mut rest))));
        rest.is_empty().then_some(values)
    }

    /// The sentence with values.
    pub(super) fn filled(&self, value: impl Fn(&str) -> String) -> String {
        let word = |piece: &Piece| match *piece {
            Piece::Text(text) => text.to_owned(),
            Piece::Value(name) => value(name),
        };
        self.pieces.iter().map(word).collect()
    }

    /// The names of its values, in alphabetical order.
    #[cfg(test)]
    pub(super) fn names(&self) -> Vec<&'static str> {
        let names = self.pieces.iter().filter_map(|piece| match *piece {
            Piece::Text(_) => None,
            Piece::Value(name) => Some(name),
        });
        let mut names: Vec<_> = names.collect();
        names.sort_unstable();
        names
    }
}

/// The name in `name}...`, unless two braces follow.
fn value_name(text: &'static str) -> Option<&'static str> {
    let (name, rest) = text.split_once('}')?;
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    (is_name && !rest.starts_with('}')).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_and_filled_in() {
        let pattern = Pattern::new("'{value}' is not {what}: write {{i}} or {known}");
        let values = pattern.values("'a' is not b: write {{i}} or c, d").expect("is one");
        assert_eq!(values, [("value", "a"), ("what", "b"), ("known", "c, d")]);
        assert_eq!(pattern.filled(str::to_uppercase), "'VALUE' is not WHAT: write {{i}} or KNOWN");
        assert_eq!(pattern.names(), ["known", "value", "what"]);
        assert_eq!(pattern.values("'a' is not b"), None);
        assert_eq!(Pattern::new("add { total = 1 }").names(), [""; 0]);
        assert_eq!(Pattern::new("none").values("none"), Some(Values::new()));
        assert_eq!(Pattern::new("none").values("none at all"), None);
        assert_eq!(Pattern::new("{a}b").values("abab"), Some(vec![("a", "aba")]));
        assert_eq!(Pattern::new("a{b}a").values("a"), None, "the end is not the beginning");
    }
}
