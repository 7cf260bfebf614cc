//! Random pieces of a client's strings: `{{hex 18 pub}}`.
//!
//! A drawn value depends only on the last word and the client's number: a scenario gives the
//! same strings each time, and two draws differ by their words.

use std::fmt;

/// Most characters of one draw.
const CHARS_MAX: usize = 65_535;

/// A random piece of a string, different for each client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Draw {
    kind: DrawKind,
    /// Tells this draw from others.
    word: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum DrawKind {
    /// `hex 18 word`.
    Hex { digits: usize },
    /// `random 1 6 word`: a number from the first to the second.
    Number { from: u64, to: u64 },
    /// `chars 8 abc word`: letters of the second.
    Letters { count: usize, letters: Vec<char> },
}

impl Draw {
    /// Parses the text between the braces; `None` if it does not start like a draw.
    ///
    /// # Errors
    /// A sentence, when it begins like one and is none.
    pub(crate) fn parse(inner: &str) -> Option<Result<Self, String>> {
        let words: Vec<&str> = inner.split_whitespace().collect();
        let count = |text: &str| {
            let count = text.parse().ok().filter(|count| (1..=CHARS_MAX).contains(count));
            count
                .ok_or_else(|| format!("'{{{{{inner}}}}}': '{text}' is not a number of characters"))
        };
        let number = |text: &str| {
            text.parse::<u64>()
                .map_err(|_| format!("'{{{{{inner}}}}}': '{text}' is not a whole number"))
        };
        let kind = match words[..] {
            ["hex", digits, _] => count(digits).map(|digits| DrawKind::Hex { digits }),
            ["random", from, to, _] => match (number(from), number(to)) {
                (Ok(from), Ok(to)) if from <= to => Ok(DrawKind::Number { from, to }),
                (Ok(_), Ok(_)) => Err(format!("'{{{{{inner}}}}}': the smaller number comes first")),
                (Err(error), _) | (_, Err(error)) => Err(error),
            },
            ["chars", digits, letters, _] => count(digits)
                .map(|count| DrawKind::Letters { count, letters: letters.chars().collect() }),
            ["hex" | "random" | "chars", _, ..] => Err(format!(
                "'{{{{{inner}}}}}' is not supported: write {{{{hex 8 word}}}}, {{{{random 1 6 \
                 word}}}} or {{{{chars 8 abc word}}}}; the word tells one draw from another"
            )),
            _ => return None,
        };
        let word = words.last().copied().unwrap_or_default().to_owned();
        Some(kind.map(|kind| Self { kind, word }))
    }

    /// The value drawn for a client, by its number in the group.
    pub(crate) fn drawn(&self, client: u64) -> String {
        let mut random = fastrand::Rng::with_seed(seed(&self.word, client));
        match &self.kind {
            DrawKind::Hex { digits } => {
                (0..*digits).filter_map(|_| char::from_digit(random.u32(..16), 16)).collect()
            }
            DrawKind::Number { from, to } => random.u64(*from..=*to).to_string(),
            DrawKind::Letters { count, letters } => {
                (0..*count).map(|_| letters[random.usize(..letters.len())]).collect()
            }
        }
    }

    /// Can any two of `clients` clients hardly get the same?
    pub(crate) fn is_unique(&self, clients: u64) -> bool {
        // By the birthday rule with one chance in 64.
        let enough = |choices: f64| choices >= 32.0 * (clients as f64).powi(2);
        match &self.kind {
            DrawKind::Hex { digits } => {
                enough(16_f64.powi(i32::try_from(*digits).unwrap_or(64).min(64)))
            }
            DrawKind::Number { from, to } => enough((to - from) as f64),
            DrawKind::Letters { count, letters } => {
                enough((letters.len() as f64).powi(i32::try_from(*count).unwrap_or(64).min(64)))
            }
        }
    }
}

/// A number that follows from a word and a client (FNV-1a, then mixed).
fn seed(word: &str, client: u64) -> u64 {
    let mut hash = 0xCBF2_9CE4_8422_2325_u64;
    for byte in word.bytes().chain(client.to_le_bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
    }
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    hash ^ (hash >> 31)
}

impl fmt::Display for Draw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            DrawKind::Hex { digits } => write!(f, "hex {digits} {}", self.word),
            DrawKind::Number { from, to } => write!(f, "random {from} {to} {}", self.word),
            DrawKind::Letters { count, letters } => {
                write!(f, "chars {count} {} {}", letters.iter().collect::<String>(), self.word)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn draw(text: &str) -> Draw {
        Draw::parse(text).expect("is a draw").expect("parses")
    }

    #[test]
    fn the_same_client_draws_the_same() {
        let hex = draw("hex 18 pub");
        assert_eq!(hex.drawn(7), draw("hex 18 pub").drawn(7));
        assert_ne!(hex.drawn(7), draw("hex 18 sub").drawn(7));
        let all: HashSet<_> = (0..10_000).map(|client| hex.drawn(client)).collect();
        assert_eq!(all.len(), 10_000);
        assert!(all.iter().all(|text| text.len() == 18));
        assert!(hex.is_unique(1_000_000) && !draw("hex 4 x").is_unique(1000));
    }

    #[test]
    fn numbers_and_letters() {
        let dice = draw("random 1 6 d");
        let thrown: HashSet<_> = (0..1000).map(|client| dice.drawn(client)).collect();
        assert_eq!(thrown.len(), 6);
        assert_eq!(draw("random 5 5 d").drawn(0), "5");
        assert!(draw("chars 4 äb x").drawn(3).chars().all(|c| "äb".contains(c)));
        for text in ["hex 18 pub", "random 1 6 d", "chars 4 äb x"] {
            assert_eq!(draw(text).to_string(), text);
        }
    }

    #[test]
    fn literal_text_is_distinguished_from_invalid_draws() {
        for text in ["hex", "i + 1", "machine", "random"] {
            assert!(Draw::parse(text).is_none(), "{text}");
        }
        for text in ["hex 8", "hex 0 x", "hex x x", "random 6 1 x", "random 1 x", "chars 8 x"] {
            assert!(Draw::parse(text).expect("looks like one").is_err(), "{text}");
        }
    }
}
