//! Publish and subscribe, request and answer.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tacho_bus::{Bus, BusError, Bytes, MESSAGE_BYTES_MAX, Subscription};

use crate::{Connect, Test, Verdict, pattern, subject, until};

pub(crate) const TESTS: &[Test] = &[
    ("messages_arrive_once_and_in_order", in_order),
    ("a_pattern_selects_messages", selects),
    ("handles_share_one_engine", shared),
    ("a_full_subscription_drops_and_counts", full),
    ("a_request_gets_its_answer", answered),
    ("a_request_without_a_responder_fails_at_once", no_responder),
    ("a_request_without_an_answer_times_out", timed_out),
    ("a_dropped_subscription_gets_nothing", unsubscribed),
    ("large_messages_pass_and_larger_ones_are_refused", large),
];

const WAIT: Duration = Duration::from_secs(10);

/// The next payload as text.
fn text(messages: &Subscription) -> String {
    let message = messages.next(WAIT).expect("open").expect("a message in time");
    String::from_utf8(message.payload.to_vec()).expect("text")
}

fn in_order(connect: &Connect, test: &'static str) -> Verdict {
    let bus = connect();
    let messages = bus.subscribe(&pattern(test, "x"), 2_000)?;
    for number in 0..1_000 {
        let payload = Bytes::from(number.to_string());
        until("the bus takes it", || bus.publish(&subject(test, "x"), payload.clone()).is_ok());
    }
    for number in 0..1_000 {
        assert_eq!(text(&messages), number.to_string());
    }
    assert_eq!(messages.next(Duration::from_millis(50))?, None);
    assert_eq!(messages.dropped(), 0);
    Ok(())
}

fn selects(connect: &Connect, test: &'static str) -> Verdict {
    let bus = connect();
    let one = bus.subscribe(&pattern(test, "a.*"), 100)?;
    let deep = bus.subscribe(&pattern(test, "a.>"), 100)?;
    for rest in ["a.b.c", "b.b", "a.b", "a"] {
        bus.publish(&subject(test, rest), Bytes::from_static(rest.as_bytes()))?;
    }
    assert_eq!((text(&deep), text(&deep)), ("a.b.c".to_owned(), "a.b".to_owned()));
    let message = one.next(WAIT)?.expect("a message in time");
    assert_eq!((message.subject, message.reply), (subject(test, "a.b"), None));
    for messages in [one, deep] {
        assert_eq!(messages.next(Duration::from_millis(50))?, None);
    }
    Ok(())
}

fn shared(connect: &Connect, test: &'static str) -> Verdict {
    let (one, other) = (connect(), connect());
    let messages = other.subscribe(&pattern(test, "x"), 10)?;
    // On another handle a subscription may need a moment to be seen.
    until("the message arrives", || {
        one.publish(&subject(test, "x"), Bytes::from_static(b"hello")).expect("published");
        messages.next(Duration::from_millis(20)).expect("open").is_some()
    });
    Ok(())
}

fn full(connect: &Connect, test: &'static str) -> Verdict {
    let bus = connect();
    let messages = bus.subscribe(&pattern(test, "x"), 4)?;
    until("something is dropped", || {
        // A full outgoing queue is another bound.
        let _ = bus.publish(&subject(test, "x"), Bytes::from_static(b"old"));
        messages.dropped() > 0
    });
    until("newer messages arrive when there is room", || {
        let _ = bus.publish(&subject(test, "x"), Bytes::from_static(b"new"));
        messages
            .next(Duration::from_millis(20))
            .expect("open")
            .is_some_and(|message| message.payload == b"new"[..])
    });
    Ok(())
}

/// Answers requests to `ok` with their payload twice, and no others.
fn responder(bus: &Arc<dyn Bus>, test: &'static str) -> thread::JoinHandle<()> {
    let bus = Arc::clone(bus);
    let requests = bus.subscribe(&pattern(test, "*"), 100).expect("subscribed");
    thread::spawn(move || {
        while let Some(request) = requests.next(WAIT).expect("open") {
            match request.subject.last() {
                "ok" => {
                    let twice = [&request.payload[..], &request.payload[..]].concat();
                    let reply = request.reply.expect("a request");
                    bus.publish(&reply, twice.into()).expect("answered");
                }
                "end" => return,
                _ => {}
            }
        }
    })
}

fn answered(connect: &Connect, test: &'static str) -> Verdict {
    let (bus, asking) = (connect(), connect());
    let responder = responder(&bus, test);
    let ask = || asking.request(&subject(test, "ok"), Bytes::from_static(b"ab"), WAIT);
    until("the responder is seen", || ask().is_ok());
    for _ in 0..50 {
        assert_eq!(ask()?, b"abab"[..]);
    }
    bus.publish(&subject(test, "end"), Bytes::new())?;
    responder.join().expect("ended");
    Ok(())
}

fn no_responder(connect: &Connect, test: &'static str) -> Verdict {
    let subject = subject(test, "empty");
    let error = connect().request(&subject, Bytes::new(), Duration::from_secs(600));
    assert_eq!(error, Err(BusError::NoResponder { subject: subject.to_string() }));
    Ok(())
}

fn timed_out(connect: &Connect, test: &'static str) -> Verdict {
    let bus = connect();
    let responder = responder(&bus, test);
    let error = bus.request(&subject(test, "silent"), Bytes::new(), Duration::from_millis(100));
    assert!(matches!(error, Err(BusError::TimedOut { waited_ms: 100, .. })), "{error:?}");
    bus.publish(&subject(test, "end"), Bytes::new())?;
    responder.join().expect("ended");
    Ok(())
}

fn unsubscribed(connect: &Connect, test: &'static str) -> Verdict {
    let bus = connect();
    drop(bus.subscribe(&pattern(test, "x"), 10)?);
    until("nothing answers there", || {
        let asked = bus.request(&subject(test, "x"), Bytes::new(), Duration::from_millis(100));
        matches!(asked, Err(BusError::NoResponder { .. }))
    });
    Ok(())
}

fn large(connect: &Connect, test: &'static str) -> Verdict {
    let bus = connect();
    let messages = bus.subscribe(&pattern(test, "x"), 10)?;
    let payload: Vec<u8> = (0..MESSAGE_BYTES_MAX).map(|byte| (byte % 251) as u8).collect();
    bus.publish(&subject(test, "x"), payload.clone().into())?;
    assert_eq!(messages.next(WAIT)?.expect("a message in time").payload, payload);
    let larger = Bytes::from(vec![0; MESSAGE_BYTES_MAX + 1]);
    let error = bus.publish(&subject(test, "x"), larger.clone());
    assert!(matches!(error, Err(BusError::TooLarge { .. })), "{error:?}");
    let error = bus.request(&subject(test, "x"), larger, WAIT);
    assert!(matches!(error, Err(BusError::TooLarge { .. })), "{error:?}");
    Ok(())
}
