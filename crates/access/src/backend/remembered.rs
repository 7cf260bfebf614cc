//! Answers of a backend that came a short while ago.

use std::collections::HashMap;

use crate::remembered::Proof;

/// Answers, bounded in number and time, by a proof of what was asked.
///
/// They are kept in two maps. When the newer one is full it becomes the older one, and what was in
/// that is forgotten.
pub struct RememberedAnswers<T> {
    newer: HashMap<Proof, KeptAnswer<T>>,
    older: HashMap<Proof, KeptAnswer<T>>,
    len_max: usize,
}

struct KeptAnswer<T> {
    answer: T,
    until_ns: u64,
}

impl<T> RememberedAnswers<T> {
    /// At most `len_max` answers.
    #[must_use]
    pub fn new(len_max: usize) -> Self {
        Self { newer: HashMap::new(), older: HashMap::new(), len_max }
    }

    /// The answer that still counts.
    pub fn get(&self, asked: Proof, now_ns: u64) -> Option<&T> {
        let known = self.newer.get(&asked).or_else(|| self.older.get(&asked))?;
        (now_ns < known.until_ns).then_some(&known.answer)
    }

    /// An answer has come, and counts until this time.
    pub fn add(&mut self, asked: Proof, answer: T, until_ns: u64) {
        if self.len_max < 2 {
            return;
        }
        if self.newer.len() >= self.len_max / 2 && !self.newer.contains_key(&asked) {
            self.older = std::mem::take(&mut self.newer);
        }
        self.newer.insert(asked, KeptAnswer { answer, until_ns });
    }

    /// Answers that are kept, also those that do not count any more.
    pub fn len(&self) -> usize {
        self.newer.len() + self.older.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remembered::ProcessKey;

    #[test]
    fn answers_are_forgotten_when_they_are_old_or_too_many() {
        let key = ProcessKey::new().expect("randomness");
        let asked: Vec<Proof> = (0..100)
            .map(|number| key.proof_of_all([Some(number.to_string())].into_iter()))
            .collect();
        let mut answers = RememberedAnswers::new(10);
        answers.add(asked[0], "allow", 100);
        assert_eq!(answers.get(asked[0], 99), Some(&"allow"));
        assert_eq!(answers.get(asked[0], 100), None);
        // The newest counts.
        answers.add(asked[0], "deny", 300);
        assert_eq!((answers.get(asked[0], 200), answers.len()), (Some(&"deny"), 1));
        for proof in &asked {
            answers.add(*proof, "allow", 300);
            assert!(answers.len() <= 10);
            assert_eq!(answers.get(*proof, 200), Some(&"allow"));
        }
        assert_eq!(answers.get(asked[0], 200), None);
        let mut nothing = RememberedAnswers::new(0);
        nothing.add(asked[0], "allow", 300);
        assert!(nothing.is_empty());
    }
}
