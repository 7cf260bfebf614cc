//! The order of repeats: all sides in turns, so that drift affects all of them.

use std::collections::VecDeque;

/// How often the repeat of one turn is made at most.
const ATTEMPTS_MAX: usize = 3;

/// Whose repeat it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    /// That of the side at this position.
    Side(usize),
    /// The first side's, once more: for the noise floor.
    Again,
}

/// A repeat that is to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) whose: Whose,
    /// In place of one that does not count.
    pub(super) made_up: bool,
}

/// The turns that are left.
#[derive(Debug)]
pub(super) struct Turns {
    left: VecDeque<Whose>,
    /// The turn that was taken last, and how often.
    last: Option<(Whose, usize)>,
    /// How many more may be made up.
    budget: usize,
    /// Repeats of all turns, with those that are made up so far.
    total: usize,
}

impl Turns {
    /// `repeats` of so many sides and `again` of the first one, spread over them; at most `budget`
    /// more in place of those that do not count.
    pub(super) fn new(sides: usize, repeats: usize, again: usize, budget: usize) -> Self {
        let mut left = VecDeque::new();
        for round in 0..repeats {
            let more = (round + 1) * again / repeats - round * again / repeats;
            let mut order: Vec<Whose> = (0..sides).map(Whose::Side).collect();
            order.extend(std::iter::repeat_n(Whose::Again, more));
            // a b, then b a: drift affects both sides alike.
            if round % 2 == 1 {
                order.reverse();
            }
            left.extend(order);
        }
        Self { total: left.len(), left, last: None, budget }
    }

    /// The next turn; `counted`: whether the last one counts.
    pub(super) fn next(&mut self, counted: bool) -> Option<Turn> {
        if let Some((whose, attempts)) = self.last
            && !counted
            && self.budget > 0
            && attempts < ATTEMPTS_MAX
        {
            self.budget -= 1;
            self.total += 1;
            self.last = Some((whose, attempts + 1));
            return Some(Turn { whose, made_up: true });
        }
        let whose = self.left.pop_front()?;
        self.last = Some((whose, 1));
        Some(Turn { whose, made_up: false })
    }

    /// How many there are, as far as is known.
    pub(super) fn total(&self) -> usize {
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The turns as letters; `c` is the first side once more. Those at these places do not count.
    fn order(mut turns: Turns, invalid: &[usize]) -> String {
        let mut out = String::new();
        let mut counted = true;
        while let Some(turn) = turns.next(counted) {
            counted = !invalid.contains(&(out.chars().filter(|c| *c != '+').count()));
            out.push_str(if turn.made_up { "+" } else { "" });
            out.push(match turn.whose {
                Whose::Side(index) => char::from(b'a' + u8::try_from(index).expect("few")),
                Whose::Again => 'c',
            });
        }
        out
    }

    #[test]
    fn sides_take_turns() {
        assert_eq!(order(Turns::new(2, 4, 0, 0), &[]), "abbaabba");
        assert_eq!(order(Turns::new(2, 3, 3, 0), &[]), "abccbaabc");
        assert_eq!(order(Turns::new(2, 4, 2, 0), &[]), "abcbaabcba");
        assert_eq!(order(Turns::new(2, 1, 2, 0), &[]), "abcc");
    }

    #[test]
    fn runs_that_do_not_count_are_repeated_within_bounds() {
        assert_eq!(order(Turns::new(2, 2, 0, 5), &[1]), "ab+bba");
        // Not for ever at one place, so that the others have a chance.
        assert_eq!(order(Turns::new(2, 1, 0, 9), &[0, 1, 2]), "a+a+ab");
        assert_eq!(order(Turns::new(2, 1, 0, 1), &[0, 1, 2, 3]), "a+ab");
        assert_eq!(order(Turns::new(2, 1, 0, 0), &[0, 1]), "ab");
        let mut turns = Turns::new(2, 1, 0, 1);
        turns.next(true);
        turns.next(false);
        assert_eq!(turns.total(), 3);
    }
}
