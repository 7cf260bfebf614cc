use proptest::prelude::*;

use super::*;

const SECOND_NS: u64 = 1_000_000_000;

fn window() -> Window {
    Window::new(5 * SECOND_NS, 4 << 20)
}

/// A network between two windows that delays, repeats and drops, as its numbers say.
struct Network {
    rng: u64,
    /// Of 100 pieces, so many are dropped, and so many come twice.
    dropped: u64,
    repeated: u64,
    delay_ns: u64,
    /// When it arrives, at which side, and what.
    on_its_way: Vec<(u64, usize, Vec<u8>)>,
}

impl Network {
    fn number(&mut self) -> u64 {
        self.rng ^= self.rng << 13;
        self.rng ^= self.rng >> 7;
        self.rng ^= self.rng << 17;
        self.rng
    }

    fn send(&mut self, now_ns: u64, to: usize, piece: Vec<u8>) {
        let copies = match self.number() % 100 {
            lot if lot < self.dropped => 0,
            lot if lot < self.dropped + self.repeated => 2,
            _ => 1,
        };
        for _ in 0..copies {
            let delay_ns = self.number() % self.delay_ns.max(1);
            self.on_its_way.push((now_ns + delay_ns, to, piece.clone()));
        }
    }

    fn arrived(&mut self, now_ns: u64) -> Vec<(usize, Vec<u8>)> {
        self.on_its_way.sort_by_key(|(at_ns, ..)| *at_ns);
        let count = self.on_its_way.partition_point(|(at_ns, ..)| *at_ns <= now_ns);
        self.on_its_way.drain(..count).map(|(_, to, piece)| (to, piece)).collect()
    }
}

/// Lets both sides talk until everything has arrived; returns what each got.
fn talk(sides: &mut [Window; 2], network: &mut Network) -> [Vec<Vec<u8>>; 2] {
    let mut got = [Vec::new(), Vec::new()];
    let mut now_ns = 0;
    for _ in 0..100_000 {
        now_ns += 20_000_000;
        for (to, piece) in network.arrived(now_ns) {
            if let Taken::Message(message) = sides[to].take(now_ns, &piece) {
                got[to].push(message);
            }
        }
        for (at, side) in sides.iter_mut().enumerate() {
            while let Some(piece) = side.poll(now_ns) {
                network.send(now_ns, 1 - at, piece);
            }
        }
        if sides.iter().all(Window::is_settled) {
            return got;
        }
    }
    panic!("not everything arrived");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn messages_arrive_once_and_in_order_over_a_network_that_loses_repeats_and_delays(
        seed in 1_u64..u64::MAX,
        dropped in 0_u64..40,
        repeated in 0_u64..40,
        delay_ms in 0_u64..1_500,
        sizes in proptest::collection::vec(
            prop_oneof![0_usize..200, Just(PIECE_BYTES), Just(3 * PIECE_BYTES + 1)],
            0..30,
        ),
    ) {
        let mut network = Network {
            rng: seed,
            dropped,
            repeated,
            delay_ns: delay_ms * 1_000_000,
            on_its_way: Vec::new(),
        };
        let mut sides = [window(), window()];
        let mut sent = [Vec::new(), Vec::new()];
        for (at, size) in sizes.into_iter().enumerate() {
            let message: Vec<u8> = (0..size).map(|byte| (byte + at) as u8).collect();
            if sides[at % 2].send(&message).is_ok() {
                sent[1 - at % 2].push(message);
            }
        }
        prop_assert_eq!(talk(&mut sides, &mut network), sent);
    }

    #[test]
    fn any_bytes_are_taken_without_a_panic(
        bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..64),
    ) {
        window().take(0, &bytes);
    }
}

#[test]
fn no_more_than_the_credit_is_in_flight() {
    let mut side = window();
    for _ in 0..200 {
        side.send(b"message").expect("has room");
    }
    let data = (0..).map_while(|_| side.poll(1)).filter(|piece| piece.len() > 4).count();
    assert_eq!(data, PIECES_MAX);
    side.take(2, &encode(&Piece::Next { seq: 3 }));
    assert_eq!((0..).map_while(|_| side.poll(2)).count(), 3);
    // An acknowledgement of what was not sent is ignored.
    side.take(3, &encode(&Piece::Next { seq: 1_000 }));
    assert_eq!(side.first, 3 + 64);
}

#[test]
fn what_waits_is_bounded() {
    let mut side = Window::new(SECOND_NS, 1_000);
    assert!(matches!(side.send(&[0; 1_001]), Err(BusError::TooLarge { .. })));
    side.send(&[0; 900]).expect("has room");
    assert!(matches!(side.send(&[0; 200]), Err(BusError::Full { .. })));
    let mut other = Window::new(SECOND_NS, 500);
    let piece = side.poll(0).expect("a piece");
    assert!(matches!(other.take(0, &piece), Taken::End(_)));
}

#[test]
fn a_side_that_is_silent_is_lost_and_one_without_messages_is_not() {
    let (mut one, mut other) = (window(), window());
    for second in 1..20 {
        let now_ns = second * SECOND_NS;
        let sign = one.poll(now_ns).expect("a sign of life every second");
        assert_eq!(other.take(now_ns, &sign), Taken::Nothing);
        assert_eq!(other.silence_s(now_ns), None);
    }
    assert_eq!(one.silence_s(4 * SECOND_NS), None);
    assert_eq!(one.silence_s(19 * SECOND_NS), Some(19));
    let goodbye = one.goodbye();
    assert!(matches!(other.take(20 * SECOND_NS, &goodbye), Taken::End(_)));
    assert!(matches!(one.send(b"x"), Err(BusError::Closed { .. })));
}

#[test]
fn a_side_that_was_stopped_knows_it() {
    let mut window = window();
    let pause = 4 * SECOND_NS;
    assert_eq!(window.stood_still_s(pause), None);
    assert_eq!(window.stood_still_s(2 * pause), None);
    // What was waiting when it goes on does not count as heard.
    assert_eq!(window.stood_still_s(2 * pause + 5 * SECOND_NS), Some(5));
}
