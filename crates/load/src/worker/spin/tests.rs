use super::*;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;
/// What a turn without work takes here.
const TURN_NS: u64 = US;
/// A sleeping thread wakes up this late.
const WAKE_NS: u64 = 60 * US;

/// A thread whose messages are due every `gap_ns`, and are answered after `answer_ns`, in virtual
/// time.
struct Thread {
    spin: Spin,
    gap_ns: u64,
    answer_ns: u64,
    now_ns: u64,
    due_ns: u64,
    answers: Vec<u64>,
    activity: u64,
    late_ns_max: u64,
    /// Turns after which it went on without sleeping.
    spins: u64,
    /// What counted as spinning, by period.
    spun_ns: [u64; 20],
    slept_ns: u64,
}

impl Thread {
    fn new(timing: Timing, gap_ns: u64) -> Self {
        Self {
            spin: Spin::new(timing),
            gap_ns,
            answer_ns: 40 * US,
            now_ns: 0,
            due_ns: gap_ns,
            answers: Vec::new(),
            activity: 0,
            late_ns_max: 0,
            spins: 0,
            spun_ns: [0; 20],
            slept_ns: 0,
        }
    }

    fn run_until(&mut self, end_ns: u64) {
        while self.now_ns < end_ns {
            self.turn();
        }
    }

    /// One turn, and the wait for the next one.
    fn turn(&mut self) {
        let (began_ns, total_ns) = (self.spin.last_turn_ns, self.spin.total_ns());
        self.spin.note_turn(self.now_ns, self.activity, 0);
        self.spun_ns[(began_ns / PERIOD_NS) as usize] += self.spin.total_ns() - total_ns;
        let before = self.answers.len();
        self.answers.retain(|at_ns| *at_ns > self.now_ns);
        self.activity += (before - self.answers.len()) as u64;
        if self.due_ns <= self.now_ns {
            self.late_ns_max = self.late_ns_max.max(self.now_ns - self.due_ns);
            self.answers.push(self.now_ns + self.answer_ns);
            self.spin.note_send(self.now_ns);
            self.activity += 1;
            self.due_ns += self.gap_ns;
        }
        let next = self.spin.wait(Next::At(self.due_ns), self.now_ns);
        let before_ns = self.now_ns;
        match next {
            Next::Again => {
                self.now_ns += TURN_NS;
                self.spins += 1;
            }
            Next::At(at_ns) => {
                let event_ns = self.answers.iter().copied().min().unwrap_or(u64::MAX);
                self.now_ns = at_ns.min(event_ns).max(self.now_ns) + WAKE_NS;
                self.slept_ns += self.now_ns - before_ns;
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_thread_sleeps_until_shortly_before_the_due_time_and_then_spins() {
    let mut spin = Spin::new(Timing::SleepAndSpin);
    let now_ns = 10 * MS;
    let due_ns = now_ns + MS;
    let Next::At(at_ns) = spin.wait(Next::At(due_ns), now_ns) else { panic!("it sleeps") };
    assert_eq!(at_ns, due_ns - LEAD_NS);
    assert!(!spin.is_spinning);
    assert!(matches!(spin.wait(Next::At(due_ns), at_ns), Next::Again));
    assert!(spin.is_spinning);
}

#[test]
fn a_thread_spins_after_reads_and_writes_and_then_sleeps_until_something_comes() {
    let mut spin = Spin::new(Timing::SleepAndSpin);
    let now_ns = 10 * MS;
    assert!(matches!(spin.wait(Next::Sleep, now_ns), Next::Sleep));
    spin.note_turn(now_ns, 1, 0);
    assert!(matches!(spin.wait(Next::Sleep, now_ns + LINGER_NS - 1), Next::Again));
    assert!(matches!(spin.wait(Next::Sleep, now_ns + LINGER_NS), Next::Sleep));
}

#[test]
fn a_thread_spins_for_the_answer_to_what_it_has_just_sent() {
    let mut spin = Spin::new(Timing::SleepAndSpin);
    let now_ns = 10 * MS;
    spin.note_send(now_ns);
    assert!(matches!(spin.wait(Next::At(now_ns + MS), now_ns), Next::Again));
}

#[test]
fn spinning_sends_on_time_at_every_rate() {
    for gap_us in [33, 100, 300, 1_000, 20_000] {
        let mut thread = Thread::new(Timing::SleepAndSpin, gap_us * US);
        // Before the budget of the first period can be used up.
        thread.run_until(80 * MS);
        assert!(thread.late_ns_max <= TURN_NS, "{gap_us}: {}", thread.late_ns_max);
        let mut thread = Thread::new(Timing::Sleep, gap_us * US);
        thread.run_until(80 * MS);
        assert!(thread.late_ns_max >= WAKE_NS, "{gap_us}: {}", thread.late_ns_max);
    }
}

#[test]
fn the_budget_is_never_exceeded() {
    let default_ns = PERIOD_NS / 100 * u64::from(Timing::SPIN_BUDGET_PERCENT);
    for (gap_us, budget_ns) in
        [(250, default_ns), (300, default_ns), (100, PERIOD_NS / 10), (33, PERIOD_NS / 2)]
    {
        let mut thread = Thread::new(Timing::SleepAndSpin, gap_us * US);
        thread.spin = Spin::with_budget(budget_ns);
        thread.run_until(1_000 * MS);
        let most_ns = thread.spun_ns.into_iter().max().unwrap_or(0);
        assert!(most_ns <= budget_ns, "{gap_us}: {most_ns} of {budget_ns}");
        assert!(most_ns > budget_ns - MS, "{gap_us}: {most_ns} of {budget_ns}: it is used up");
        assert!(thread.slept_ns > 0, "{gap_us}");
        // All but the turns that ended with a read or write counts.
        let spun_ns = thread.spins * TURN_NS;
        let counted_ns = thread.spin.total_ns();
        assert!((spun_ns * 9 / 10..=spun_ns).contains(&counted_ns), "{counted_ns} of {spun_ns}");
    }
}

#[test]
fn threads_without_a_core_of_their_own_never_spin() {
    for timing in [Timing::Sleep, Timing::Batch] {
        let mut thread = Thread::new(timing, 100 * US);
        thread.run_until(100 * MS);
        assert!(thread.spins == 0 && thread.spin.total_ns() == 0, "{timing:?}");
    }
}

#[test]
fn an_interrupted_turn_does_not_count_as_spinning() {
    let mut spin = Spin::new(Timing::Spin);
    spin.note_turn(MS, 0, 0);
    let before_ns = spin.total_ns();
    spin.note_turn(MS + 400 * US, 0, 0);
    assert_eq!(spin.total_ns() - before_ns, IDLE_TURN_NS_MAX);
    spin.note_turn(MS + 401 * US, 0, 0);
    assert_eq!(spin.total_ns() - before_ns, IDLE_TURN_NS_MAX + US);
}

#[test]
fn a_turn_that_reads_or_writes_is_work() {
    let mut spin = Spin::new(Timing::Spin);
    spin.note_turn(MS, 1, 0);
    let before_ns = spin.total_ns();
    spin.note_turn(MS + 10 * US, 2, 0);
    assert_eq!(spin.total_ns(), before_ns);
}

#[test]
fn sleep_is_not_spinning() {
    let mut spin = Spin::new(Timing::SleepAndSpin);
    spin.note_turn(10 * MS, 0, 0);
    assert!(matches!(spin.wait(Next::At(12 * MS), 10 * MS), Next::At(_)));
    spin.note_turn(11 * MS, 0, 0);
    assert_eq!(spin.total_ns(), 0);
}

/// What a thread whose work takes this long per turn spends on polling in one period, and on work.
fn rests(spin: &mut Spin, work_ns: u64, turn_ns: u64) -> (u64, u64) {
    let (mut now_ns, mut polled_ns, mut slept_ns, mut activity) = (10 * PERIOD_NS, 0, 0, 0);
    while now_ns < 11 * PERIOD_NS {
        activity += 1;
        spin.note_turn(now_ns, activity, polled_ns);
        let rest = Next::Rest { until_ns: now_ns + turn_ns, polls: false, at_ns: u64::MAX };
        let Next::Rest { until_ns, polls, at_ns } = spin.wait(rest, now_ns) else {
            panic!("it rests");
        };
        assert_eq!((until_ns, at_ns), (now_ns + turn_ns, u64::MAX));
        *(if polls { &mut polled_ns } else { &mut slept_ns }) += turn_ns - work_ns;
        now_ns = until_ns;
    }
    spin.note_turn(now_ns, activity, polled_ns);
    assert_eq!(spin.total_ns(), polled_ns, "rests in which it polls are spinning, once");
    (polled_ns, slept_ns)
}

#[test]
fn a_thread_on_a_core_of_its_own_polls_through_its_rests() {
    let mut spin = Spin::new(Timing::SleepAndSpin);
    let (polled_ns, slept_ns) = rests(&mut spin, 38 * US, 50 * US);
    assert_eq!((polled_ns, slept_ns), (PERIOD_NS / 50 * 12, 0));
    // Within the budget.
    let mut spin = Spin::with_budget(PERIOD_NS / 10);
    let (polled_ns, slept_ns) = rests(&mut spin, 38 * US, 50 * US);
    assert!(polled_ns <= PERIOD_NS / 10 && slept_ns > 0, "{polled_ns} {slept_ns}");
    // Threads that share a core sleep.
    for timing in [Timing::Sleep, Timing::Batch] {
        let (polled_ns, slept_ns) = rests(&mut Spin::new(timing), 38 * US, 50 * US);
        assert!(polled_ns == 0 && slept_ns > 0, "{timing:?}");
    }
}
