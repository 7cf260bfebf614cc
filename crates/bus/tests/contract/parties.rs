//! Links over every engine.

use std::sync::mpsc;
use std::time::Duration;

use tacho_bus::{Link, LinkEnds, LinkEvent, LinkLimits};

use crate::{Connect, Test, Verdict, subject};

pub(crate) const TESTS: &[Test] = &[
    ("a_link_carries_messages_of_any_size_both_ways", carries),
    ("a_link_ends_when_the_other_side_drops_it", dropped),
    ("a_link_ends_when_the_other_side_is_silent", silent),
];

const WAIT: Duration = Duration::from_secs(20);

/// One end of a link between `a` and `b`, with what it tells.
fn end(
    connect: &Connect,
    test: &str,
    (own, other): (&str, &str),
    limits: LinkLimits,
) -> (Link, mpsc::Receiver<LinkEvent>) {
    let (sender, events) = mpsc::channel();
    let ends = LinkEnds { own: subject(test, own), other: subject(test, other) };
    let on_event = move |event| {
        // The test may have ended.
        let _ = sender.send(event);
    };
    (Link::open(connect(), ends, limits, on_event).expect("opens"), events)
}

fn carries(connect: &Connect, test: &'static str) -> Verdict {
    let (one, to_one) = end(connect, test, ("a", "b"), LinkLimits::default());
    let (other, to_other) = end(connect, test, ("b", "a"), LinkLimits::default());
    let message = |number: usize| vec![number as u8; [0, 1, 500, 300_000][number % 4]];
    for number in 0..100 {
        one.send(&message(number))?;
        other.send(&message(number + 1))?;
    }
    for number in 0..100 {
        assert_eq!(to_other.recv_timeout(WAIT)?, LinkEvent::Message(message(number)));
        assert_eq!(to_one.recv_timeout(WAIT)?, LinkEvent::Message(message(number + 1)));
    }
    assert!(one.settle(WAIT) && other.settle(WAIT));
    assert!(one.bytes().0 > 7_500_000, "{:?}", one.bytes());
    Ok(())
}

fn dropped(connect: &Connect, test: &'static str) -> Verdict {
    let (one, to_one) = end(connect, test, ("a", "b"), LinkLimits::default());
    let (other, _) = end(connect, test, ("b", "a"), LinkLimits::default());
    other.send(b"last")?;
    assert!(other.settle(WAIT));
    drop(other);
    assert_eq!(to_one.recv_timeout(WAIT)?, LinkEvent::Message(b"last".to_vec()));
    assert!(matches!(to_one.recv_timeout(WAIT)?, LinkEvent::Ended(_)));
    assert!(one.send(b"x").is_err());
    Ok(())
}

fn silent(connect: &Connect, test: &'static str) -> Verdict {
    let limits = LinkLimits { silence: Duration::from_secs(1), ..LinkLimits::default() };
    let (one, to_one) = end(connect, test, ("a", "b"), limits);
    one.send(b"x")?;
    let LinkEvent::Silent(why) = to_one.recv_timeout(WAIT)? else { panic!("no such message") };
    assert!(why.contains("nothing was heard"), "{why}");
    assert!(!one.settle(WAIT));
    Ok(())
}
