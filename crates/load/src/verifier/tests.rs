use std::collections::HashSet;

use super::*;
use crate::events::Gap;
use crate::plan::tests::{client, plan_of, publisher, subscriber};
use tacho_codec::QoS::{AtLeastOnce, AtMostOnce, ExactlyOnce};

/// The verifiers of a plan, one per set of clients, and functions to deliver to them.
struct Bench {
    streams: Arc<Streams>,
    verifiers: Vec<Verifier>,
}

impl Bench {
    fn new(plan: &Plan, threads: &[&[u32]]) -> Self {
        let streams = Arc::new(Streams::new(plan));
        let verifiers = threads
            .iter()
            .map(|clients| {
                let clients: Vec<_> = clients.iter().copied().map(ClientIndex::new).collect();
                Verifier::new(Arc::clone(&streams), plan, &clients)
            })
            .collect();
        Self { streams, verifiers }
    }

    fn payload(&self, stream: u32, seq: u32, intended_ns: u64) -> Vec<u8> {
        let stream = StreamIndex::new(stream);
        let header =
            Header { run: self.streams.run, stream, seq, probe: false, intended_ns, late_us: 0 };
        let mut payload = Vec::new();
        let info = &self.streams.infos[stream.index()];
        self.streams.contents.write(&info.content, &info.topic, &header, &mut payload);
        payload
    }

    fn deliver_raw(
        &mut self,
        (thread, client): (usize, usize),
        topic: &str,
        payload: &[u8],
    ) -> Verdict {
        let received = Received { topic, payload, dup: false, correlation: None };
        self.verifiers[thread].observe(1_000_000, client, &received)
    }

    /// Delivers message `seq`, intended at `seq` nanoseconds.
    fn deliver(&mut self, to: (usize, usize), stream: u32, seq: u32) -> Verdict {
        let payload = self.payload(stream, seq, seq.into());
        let topic = self.streams.infos[stream as usize].topic.clone();
        self.deliver_raw(to, &topic, &payload)
    }

    fn settle(&mut self, ends: &[StreamEnds]) -> Books {
        let mut books = Books::default();
        for verifier in &mut self.verifiers {
            books.add(verifier.settle(ends));
        }
        settle_shared(&mut books, ends, &HashSet::new());
        // As at the end of a drain with silence.
        books.violations.lost += books.undelivered;
        books
    }
}

/// `count` messages sent, all of them in the window.
fn sent(to: u64) -> StreamEnds {
    StreamEnds { window_to: to, to, ..StreamEnds::default() }
}

fn settled(verdict: Verdict) -> Option<u64> {
    match verdict {
        Verdict::Delivered { settled, .. } => Some(settled),
        _ => None,
    }
}

#[test]
fn losses_duplicates_and_disorder_are_reported_exactly() {
    let plan = plan_of(vec![publisher("t", ExactlyOnce), subscriber("t", ExactlyOnce)]);
    let mut bench = Bench::new(&plan, &[&[0, 1]]);
    bench.verifiers[0].set_window(Window { start_ns: 0, end_ns: 100 });
    for seq in [0, 1, 4, 3, 3, 7] {
        bench.deliver((0, 1), 0, seq);
    }
    let books = bench.settle(&[sent(10)]);
    let window = books.window;
    assert_eq!((window.expected, window.received, window.lost), (10, 5, 5));
    assert_eq!((window.duplicates, window.out_of_order), (1, 1));
    assert_eq!((window.undelivered, books.undelivered), (2, 2));
    let gap = |first_seq, count| Gap {
        stream: StreamIndex::new(0),
        receiver: client(1),
        first_seq,
        count,
        span: count,
        declared: false,
        acknowledged: count,
    };
    assert_eq!(books.gaps, [gap(2, 1), gap(5, 2), gap(8, 2)]);
    let Violations { lost, duplicates, out_of_order, corrupted } = books.violations;
    assert_eq!((lost, duplicates, out_of_order, corrupted), (5, 1, 1, 0));
    assert_eq!(books.outside, Delivery::default());
}

#[test]
fn the_contract_is_judged_by_effective_qos() {
    // (publish, subscribe, granted) -> (violations by loss, violations by duplicate)
    for (publish, subscribe, granted, expected) in [
        (AtMostOnce, ExactlyOnce, ExactlyOnce, (0, 1)),
        (AtLeastOnce, ExactlyOnce, ExactlyOnce, (1, 0)),
        (ExactlyOnce, AtLeastOnce, AtLeastOnce, (1, 0)),
        (ExactlyOnce, ExactlyOnce, ExactlyOnce, (1, 1)),
        (ExactlyOnce, ExactlyOnce, AtMostOnce, (0, 1)),
    ] {
        let plan = plan_of(vec![publisher("t", publish), subscriber("t", subscribe)]);
        let mut bench = Bench::new(&plan, &[&[0, 1]]);
        bench.verifiers[0].set_granted(1, "t", granted);
        bench.deliver((0, 1), 0, 0);
        bench.deliver((0, 1), 0, 0);
        let violations = bench.settle(&[sent(2)]).violations;
        assert_eq!((violations.lost, violations.duplicates), expected, "{publish} {subscribe}");
    }
}

#[test]
fn membership_of_the_window_is_by_intended_time() {
    let plan = plan_of(vec![publisher("t", AtLeastOnce), subscriber("t", ExactlyOnce)]);
    let mut bench = Bench::new(&plan, &[&[0, 1]]);
    bench.verifiers[0].set_window(Window { start_ns: 4, end_ns: 8 });
    for seq in [0, 0, 3, 4, 5, 5, 5, 9] {
        bench.deliver((0, 1), 0, seq);
    }
    let ends = StreamEnds { window_from: 4, window_to: 8, to: 10, ..StreamEnds::default() };
    let books = bench.settle(&[ends]);
    let (window, outside) = (books.window, books.outside);
    assert_eq!((window.expected, window.received, window.lost, window.duplicates), (4, 2, 2, 2));
    assert_eq!(
        (outside.expected, outside.received, outside.lost, outside.duplicates),
        (6, 3, 3, 1)
    );
    assert_eq!(books.received_min_max, Some((2, 2)));
    // A message of the settled window is late and not lost again.
    bench.deliver((0, 1), 0, 6);
    let books = bench.settle(&[StreamEnds {
        from: 10,
        window_from: 10,
        window_to: 12,
        to: 12,
        ..StreamEnds::default()
    }]);
    assert_eq!(books.outside.late + books.window.late, 1);
    assert_eq!((books.window.expected, books.window.lost), (2, 2));
}

#[test]
fn damaged_and_foreign_messages_are_not_deliveries() {
    let plan = plan_of(vec![
        publisher("t", AtLeastOnce),
        publisher("u", AtLeastOnce),
        subscriber("t", ExactlyOnce),
    ]);
    let mut bench = Bench::new(&plan, &[&[0, 1, 2]]);
    let good = bench.payload(0, 0, 0);
    let mut flipped = good.clone();
    flipped[30] ^= 1;
    let mut other_run = good.clone();
    other_run[3] ^= 1;
    assert_eq!(bench.deliver_raw((0, 2), "t", &flipped), Verdict::Other);
    assert_eq!(bench.deliver_raw((0, 2), "t", &good[..good.len() - 1]), Verdict::Other);
    assert_eq!(bench.deliver_raw((0, 2), "u", &good), Verdict::Other);
    assert_eq!(bench.deliver_raw((0, 2), "t", &other_run), Verdict::Other);
    assert_eq!(bench.deliver_raw((0, 2), "t", b"hello"), Verdict::Other);
    // There is no route of stream 1 to this client.
    assert_eq!(bench.deliver((0, 2), 1, 0), Verdict::Other);
    let books = bench.settle(&[sent(1), sent(0)]);
    assert_eq!((books.outside.corrupted, books.outside.unexpected), (3, 3));
    assert_eq!((books.window.lost, books.violations.corrupted), (1, 3));
}

#[test]
fn shared_group_counts_once_even_across_threads() {
    let filter = "$share/g/t/+";
    let plan = plan_of(vec![
        publisher("t/1", ExactlyOnce),
        subscriber(filter, ExactlyOnce),
        subscriber(filter, ExactlyOnce),
        subscriber("t/1", ExactlyOnce),
    ]);
    assert_eq!(plan.routes.len(), 2);
    let mut bench = Bench::new(&plan, &[&[0, 1], &[2, 3]]);
    for verifier in &mut bench.verifiers {
        verifier.set_window(Window { start_ns: 0, end_ns: 100 });
    }
    for seq in 0..10 {
        assert_eq!(settled(bench.deliver((1, 1), 0, seq)), Some(1));
        // Message 3 reaches no member of the group, message 4 two members.
        match seq {
            3 => {}
            4 => {
                bench.deliver((0, 1), 0, seq);
                bench.deliver((1, 0), 0, seq);
            }
            _ => {
                bench.deliver((seq as usize % 2, 1 - seq as usize % 2), 0, seq);
            }
        }
    }
    let books = bench.settle(&[sent(10)]);
    let window = books.window;
    assert_eq!((window.expected, window.received, window.lost), (20, 19, 1));
    assert_eq!(window.duplicates, 1);
    assert_eq!((books.violations.lost, books.violations.duplicates), (1, 1));
    assert_eq!(books.gaps.len(), 1);
    assert_eq!(books.gaps[0].receiver, Receiver::Shared(0));
    assert_eq!(books.gaps[0].first_seq, 3);
}

#[test]
fn plain_and_shared_subscription_of_one_client_get_a_copy_each() {
    let mut member = subscriber("$share/g/t", ExactlyOnce);
    member.1.subscriptions.extend(subscriber("t", ExactlyOnce).1.subscriptions);
    let plan = plan_of(vec![publisher("t", ExactlyOnce), member]);
    let mut bench = Bench::new(&plan, &[&[0, 1]]);
    for _ in 0..2 {
        assert_eq!(settled(bench.deliver((0, 1), 0, 0)), Some(1));
    }
    bench.deliver((0, 1), 0, 0);
    let books = bench.settle(&[sent(1)]);
    assert_eq!((books.window.expected, books.window.lost), (2, 0));
    assert_eq!(books.outside.duplicates, 1);
}

#[test]
fn a_gap_settles_the_messages_it_reveals() {
    let plan = plan_of(vec![publisher("t", AtMostOnce), subscriber("t", AtMostOnce)]);
    let mut bench = Bench::new(&plan, &[&[0, 1]]);
    assert_eq!(settled(bench.deliver((0, 1), 0, 3)), Some(4));
    assert_eq!(settled(bench.deliver((0, 1), 0, 1)), Some(0));
    assert_eq!(settled(bench.deliver((0, 1), 0, 4)), Some(1));
}

#[test]
fn losses_of_failed_clients_are_no_violation() {
    let plan = plan_of(vec![publisher("t", ExactlyOnce), subscriber("t", ExactlyOnce)]);
    let mut bench = Bench::new(&plan, &[&[0, 1]]);
    bench.verifiers[0].set_failed(1);
    let books = bench.settle(&[sent(5)]);
    assert_eq!((books.window.lost, books.violations.total()), (5, 0));
    let mut bench = Bench::new(&plan, &[&[0, 1]]);
    let unacknowledged = std::iter::once(0..5).collect();
    let books = bench.settle(&[StreamEnds { failed: true, unacknowledged, ..sent(5) }]);
    assert_eq!((books.window.lost, books.violations.total()), (5, 0));
}

#[test]
fn lost_acknowledged_messages_are_distinguished() {
    for (published, failed, expected) in [
        // Of 1 to 4 and 7 to 9, which are lost, 3, 4 and 8 were acknowledged.
        (AtLeastOnce, false, (2, 1, 4, 7)),
        // The last messages of a failed publisher may never have reached the broker.
        (AtLeastOnce, true, (2, 1, 2, 3)),
        (AtMostOnce, false, (0, 0, 0, 0)),
    ] {
        let plan = plan_of(vec![publisher("t", published), subscriber("t", ExactlyOnce)]);
        let mut bench = Bench::new(&plan, &[&[0, 1]]);
        for seq in [0, 5, 6] {
            bench.deliver((0, 1), 0, seq);
        }
        let unacknowledged = vec![0..3, 6..8, 9..20];
        let books = bench.settle(&[StreamEnds { failed, unacknowledged, ..sent(10) }]);
        let found = (
            books.acknowledged_lost,
            books.acknowledged_undelivered,
            books.violations.lost - books.undelivered,
            books.violations.lost,
        );
        assert_eq!(found, expected, "{published} {failed}");
        assert_eq!(books.window.lost, 7);
        let of_gaps: u64 = books.gaps.iter().map(|gap| gap.acknowledged).sum();
        assert_eq!(of_gaps, expected.0 + expected.1);
    }
}

#[test]
fn probes_are_seen_once_per_receiver() {
    let filter = "$share/g/t";
    let plan = plan_of(vec![
        publisher("t", AtLeastOnce),
        subscriber(filter, ExactlyOnce),
        subscriber("t", ExactlyOnce),
    ]);
    let mut bench = Bench::new(&plan, &[&[0, 1, 2]]);
    let header = Header {
        run: bench.streams.run,
        stream: StreamIndex::new(0),
        seq: 0,
        probe: true,
        intended_ns: 0,
        late_us: 0,
    };
    let mut payload = Vec::new();
    let info = &bench.streams.infos[header.stream.index()];
    bench.streams.contents.write(&info.content, &info.topic, &header, &mut payload);
    let probe = |receiver| Verdict::Probe { stream: StreamIndex::new(0), receiver };
    assert_eq!(bench.deliver_raw((0, 1), "t", &payload), probe(Receiver::Shared(0)));
    assert_eq!(bench.deliver_raw((0, 1), "t", &payload), Verdict::Other);
    assert_eq!(bench.deliver_raw((0, 2), "t", &payload), probe(client(2)));
    assert_eq!(bench.settle(&[sent(0)]).window, Delivery::default());
}

#[test]
fn a_bridged_message_is_recognised_by_its_new_topic() {
    let mut plan = plan_of(vec![publisher("a", ExactlyOnce), subscriber("remote/a", ExactlyOnce)]);
    plan.groups[0].targets = vec![crate::Target::tcp(([127, 0, 0, 1], 1).into(), "one")];
    plan.bridges = vec![crate::Bridge {
        from: "one".into(),
        // The plan's targets.
        to: String::new(),
        filter: "#".into(),
        strip: String::new(),
        prefix: "remote/".into(),
    }];
    plan.routes = plan.derive_routes();
    let mut bench = Bench::new(&plan, &[&[0, 1]]);
    bench.verifiers[0].set_window(Window { start_ns: 0, end_ns: u64::MAX });
    let payload = bench.payload(0, 0, 0);
    assert_eq!(settled(bench.deliver_raw((0, 1), "remote/a", &payload)), Some(1));
    let second = bench.payload(0, 1, 1);
    assert_eq!(bench.deliver_raw((0, 1), "elsewhere/a", &second), Verdict::Other);
    let books = bench.settle(&[sent(2)]);
    assert_eq!((books.violations.corrupted, books.violations.lost), (1, 1));
}

proptest::proptest! {
    /// Any deliveries in any order, around any window: the books agree with naive counting.
    #[test]
    fn books_agree_with_naive_counting(
        deliveries in proptest::collection::vec((0u32..40, 0usize..3), 0..150),
        window in (0u64..40, 0u64..40),
    ) {
        let plan = plan_of(vec![
            publisher("t", AtLeastOnce),
            subscriber("t", ExactlyOnce),
            subscriber("#", ExactlyOnce),
            subscriber("$share/g/t", ExactlyOnce),
        ]);
        let (from, to) = (window.0.min(window.1), window.0.max(window.1));
        let mut bench = Bench::new(&plan, &[&[0, 1, 2, 3]]);
        bench.verifiers[0].set_window(Window { start_ns: from, end_ns: to });
        let mut copies = [[0u64; 40]; 3];
        for (seq, receiver) in deliveries {
            bench.deliver((0, receiver + 1), 0, seq);
            copies[receiver][seq as usize] += 1;
        }
        let ends =
            StreamEnds { window_from: from, window_to: to, to: 40, ..StreamEnds::default() };
        let books = bench.settle(&[ends]);
        let counted = |inside: bool, count: fn(u64) -> u64| -> u64 {
            let all = copies.iter().flat_map(|copies| (0..).zip(copies));
            all.filter(|(seq, _)| (from..to).contains(seq) == inside)
                .map(|(_, copies)| count(*copies))
                .sum()
        };
        for (inside, part) in [(true, &books.window), (false, &books.outside)] {
            let expected = [
                counted(inside, |_| 1),
                counted(inside, |copies| copies.min(1)),
                counted(inside, |copies| u64::from(copies == 0)),
                counted(inside, |copies| copies.saturating_sub(1)),
            ];
            let found = [part.expected, part.received, part.lost, part.duplicates];
            proptest::prop_assert_eq!(found, expected);
        }
        let lost: u64 = books.gaps.iter().map(|gap| gap.count).sum();
        proptest::prop_assert_eq!(lost, books.window.lost + books.outside.lost);
        proptest::prop_assert_eq!(books.violations.lost, lost);
    }
}
