use std::net::Ipv4Addr;
use std::time::Duration;

use super::*;

struct Server {
    places: Arc<Places>,
    counters: Arc<Counters>,
    start: Instant,
}

impl Server {
    fn new(places_max: usize) -> Self {
        let counters = Arc::<Counters>::default();
        let places = Places::new(Limits::with_places(places_max), Arc::clone(&counters));
        Self { places, counters, start: Instant::now() }
    }

    fn at(&self, second: u64) -> Instant {
        self.start + Duration::from_secs(second)
    }

    /// Enters from the address 10.0.0.`peer`.
    fn enter(&self, peer: u8, second: u64) -> Option<Place> {
        let peer = IpAddr::V4(Ipv4Addr::new(10, 0, 0, peer));
        let id = self.places.try_enter(peer, self.at(second));
        id.map(|id| Place { places: Arc::clone(&self.places), id, peer: Peer(peer) })
    }

    fn deadline_s(&self, place: &Place) -> Option<u64> {
        match place.wait(Waker::noop()) {
            Wait::Until(deadline) => deadline.map(|at| (at - self.start).as_secs()),
            Wait::GiveWay => panic!("it was asked to give way"),
        }
    }
}

#[test]
fn connection_that_waited_longest_gives_way() {
    let server = Server::new(3);
    let [first, second, third] = [1, 2, 3].map(|at| server.enter(1, at).expect("a place"));
    // An answer makes it young, bytes of a request do not.
    first.received(10, server.at(4));
    first.begin_answer();
    first.end_answer(server.at(5));
    second.received(1, server.at(6));
    assert!(server.enter(1, 7).is_none());
    assert_eq!([&first, &second, &third].map(Place::gives_way), [false, true, false]);
    // Until it has left, no other one is asked.
    assert!(server.enter(1, 8).is_none());
    assert!(!third.gives_way());
    second.leave();
    assert!(server.enter(1, 8).is_some());
    assert_eq!(server.counters.gave_way(), 1);
}

#[test]
fn connections_being_answered_stay_unless_their_peer_does_not_read() {
    let server = Server::new(2);
    let [first, second] = [1, 2].map(|at| server.enter(1, at).expect("a place"));
    for place in [&first, &second] {
        place.received(10, server.at(3));
        place.begin_answer();
    }
    assert!(server.enter(1, 4).is_none());
    assert!(!first.gives_way() && !second.gives_way());
    second.wrote(true, server.at(5));
    second.wrote(false, server.at(6));
    assert!(server.enter(1, 7).is_none());
    assert!(!second.gives_way(), "it reads again");
    second.wrote(true, server.at(8));
    assert!(server.enter(1, 9).is_none());
    assert!(!first.gives_way() && second.gives_way());
}

#[test]
fn address_with_most_idle_connections_gives_way() {
    let server = Server::new(4);
    let honest = server.enter(1, 0).expect("a place");
    let idle = [1, 2, 3].map(|at| server.enter(2, at).expect("a place"));
    assert!(server.enter(3, 4).is_none());
    assert!(!honest.gives_way());
    assert_eq!(idle.each_ref().map(Place::gives_way), [true, false, false]);
}

#[test]
fn each_wait_for_the_peer_has_a_deadline() {
    let server = Server::new(1);
    let place = server.enter(1, 100).expect("a place");
    assert_eq!(server.deadline_s(&place), Some(115), "no byte of a request");
    place.received(1, server.at(110));
    place.received(1, server.at(111));
    assert_eq!(server.deadline_s(&place), Some(125), "from the request's first byte");
    place.begin_answer();
    assert_eq!(server.deadline_s(&place), None);
    place.wrote(true, server.at(130));
    place.wrote(true, server.at(135));
    assert_eq!(server.deadline_s(&place), Some(160), "the answer is not read");
    place.wrote(false, server.at(150));
    place.end_answer(server.at(151));
    assert_eq!(server.deadline_s(&place), Some(226), "until the next request");
    place.received(1, server.at(200));
    assert_eq!(server.deadline_s(&place), Some(215));
}

#[test]
fn bytes_of_each_request_are_limited() {
    let server = Server::new(1);
    let place = server.enter(1, 0).expect("a place");
    let max = server.places.limits.request_bytes_max;
    assert!(place.received(max, server.at(0)));
    place.begin_answer();
    place.end_answer(server.at(0));
    assert!(place.received(max - 1, server.at(0)));
    assert!(place.received(1, server.at(0)));
    assert!(!place.received(1, server.at(0)));
}
