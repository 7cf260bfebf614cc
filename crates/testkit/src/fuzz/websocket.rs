//! A WebSocket from a peer that sends anything: cuts do not change what the other side understands.

use tacho_net::Filter;
use tacho_net::ws::{WsClient, WsFilter, WsOrigins, WsServer};

const PATH: &str = "/mqtt";
const PROTOCOL: &str = "mqtt";
const ORIGIN: &str = "https://app.example";

/// What came of a stream.
#[derive(Debug, PartialEq, Eq)]
struct Understood {
    plain: Vec<u8>,
    is_refused: bool,
    is_closed: bool,
    /// The handshake was completed.
    is_open: bool,
}

/// First byte: bit 0 is the receiving side, bit 1 whether the stream begins with the handshake;
/// second byte: distance between cuts; rest: the stream.
pub fn check(data: &[u8]) {
    let [mode, step, stream @ ..] = data else { return };
    let whole = understand(*mode, stream, stream.len().max(1));
    assert_eq!(understand(*mode, stream, usize::from(*step).max(1)), whole);
    assert_eq!(understand(*mode, stream, 1), whole);
}

fn understand(mode: u8, stream: &[u8], step: usize) -> Understood {
    let (mut filter, mut wire) = (receiver(mode), Vec::new());
    let (mut plain, mut is_refused) = (Vec::new(), false);
    for piece in stream.chunks(step) {
        if filter.peer_closed() {
            break;
        }
        is_refused = filter.inbound(piece, &mut plain).is_err();
        if is_refused {
            break;
        }
        // Pongs, of which only the latest is owed.
        if filter.wants_write() {
            wire.clear();
            filter.outbound(&[], &mut wire).expect("an answer can be written");
            assert!(wire.len() <= 1024, "{} bytes for an answer", wire.len());
        }
    }
    assert!(plain.len() <= stream.len(), "more was understood than sent");
    let is_open = filter.is_ready();
    filter.finish(&mut wire);
    Understood { plain, is_refused, is_closed: filter.peer_closed(), is_open }
}

/// A client or a server, open unless the stream is to begin with the handshake.
fn receiver(mode: u8) -> WsFilter {
    let client = WsClient {
        host: "localhost".to_owned(),
        path: PATH.to_owned(),
        protocol: PROTOCOL.to_owned(),
    };
    let origins = Some(WsOrigins { allowed: vec![ORIGIN.to_owned()], is_required: false });
    let protocols = vec![PROTOCOL.to_owned()];
    let server = WsServer { path: PATH.to_owned(), protocols, origins };
    let (mut client, mut server) = (client.filter(), server.filter());
    let (mut plain, mut request, mut answer) = (Vec::new(), Vec::new(), Vec::new());
    client.outbound(&[], &mut request).expect("a request");
    let begins_with_handshake = mode & 2 != 0;
    if !begins_with_handshake {
        server.inbound(&request, &mut plain).expect("the request is accepted");
        server.outbound(&[], &mut answer).expect("an answer");
        client.inbound(&answer, &mut plain).expect("the answer is accepted");
    }
    if mode & 1 == 0 { server } else { client }
}
