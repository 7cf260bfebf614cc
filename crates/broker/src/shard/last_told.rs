//! Log lines about what keeps happening, with a pause between two of them.

/// When the log last told of something.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LastTold(Option<u64>);

impl LastTold {
    /// Whether to tell of it now: not within `pause_ns` of the last time. It counts as told then.
    pub(super) fn may_tell(&mut self, now_ns: u64, pause_ns: u64) -> bool {
        let may = self.0.is_none_or(|told_ns| now_ns.saturating_sub(told_ns) >= pause_ns);
        if may {
            self.0 = Some(now_ns);
        }
        may
    }
}

#[cfg(test)]
mod tests {
    use super::LastTold;

    #[test]
    fn the_first_time_is_told_and_then_one_in_each_pause() {
        let mut last = LastTold::default();
        let told = [0, 5, 9, 10, 11, 40].map(|now_ns| last.may_tell(now_ns, 10));
        assert_eq!(told, [true, false, false, true, false, true]);
    }
}
