//! TLS filters against each other, in memory: which certificates they accept, and the errors of
//! both sides if not.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::io;
use std::path::{Path, PathBuf};

use proptest::collection::vec;
use proptest::prelude::*;
use tacho_net::tls::{
    ClientCertificates, TlsClient, TlsClientSettings, TlsError, TlsFilter, TlsReloaded, TlsServer,
    TlsServerSettings,
};
use tacho_net::ws::{WsClient, WsServer};
use tacho_net::{Filter, Layers};
use tacho_testkit::net::certificates::{Authority, Identity, client, server, trusting};

/// The bytes that the client and the server have read.
type Read = (Vec<u8>, Vec<u8>);
/// A client's filter and a server's.
type Pair = (Box<dyn Filter>, Box<dyn Filter>);

/// Exchanges bytes until neither side has output. Returns the bytes that each side read.
fn talk(
    client: &mut dyn Filter,
    server: &mut dyn Filter,
    piece: usize,
) -> Result<Read, (io::Error, &'static str)> {
    let (mut at_client, mut at_server) = (Vec::new(), Vec::new());
    loop {
        let (mut up, mut down) = (Vec::new(), Vec::new());
        client.outbound(&[], &mut up).unwrap();
        for part in up.chunks(piece) {
            server.inbound(part, &mut at_server).map_err(|error| (error, "server"))?;
        }
        server.outbound(&[], &mut down).unwrap();
        for part in down.chunks(piece) {
            client.inbound(part, &mut at_client).map_err(|error| (error, "client"))?;
        }
        if up.is_empty() && down.is_empty() {
            return Ok((at_client, at_server));
        }
    }
}

/// The errors of the client and of the server, when one side fails and the other receives its
/// alert.
fn failures(client: &mut dyn Filter, server: &mut dyn Filter) -> (String, String) {
    let (error, side) = talk(client, server, 1000).expect_err("a failed handshake");
    let (mut alert, mut plain) = (Vec::new(), Vec::new());
    let other = match side {
        "server" => {
            server.outbound(&[], &mut alert).unwrap();
            client.inbound(&alert, &mut plain)
        }
        _ => {
            client.outbound(&[], &mut alert).unwrap();
            server.inbound(&alert, &mut plain)
        }
    };
    let other = other.expect_err("the other side receives the alert").to_string();
    match side {
        "server" => (other, error.to_string()),
        _ => (error.to_string(), other),
    }
}

/// Whether a handshake succeeds, how many bytes the server's first answer has (fewer where a
/// session is resumed), and the server's filter after it.
fn handshake(client: &TlsClient, server: &TlsServer) -> (bool, usize, TlsFilter) {
    let (mut ours, mut theirs) = (client.filter().unwrap(), server.filter().unwrap());
    let (mut up, mut down) = (Vec::new(), Vec::new());
    ours.outbound(&[], &mut up).unwrap();
    theirs.inbound(&up, &mut Vec::new()).unwrap();
    theirs.outbound(&[], &mut down).unwrap();
    ours.inbound(&down, &mut Vec::new()).unwrap();
    let is_done = talk(&mut ours, &mut theirs, 1000).is_ok();
    (is_done, down.len(), theirs)
}

#[test]
fn a_client_checks_issuer_and_name() {
    let folder = tempfile::tempdir().unwrap();
    let good = Authority::new(folder.path(), "good");
    let other = Authority::new(folder.path(), "other");
    let server =
        server(&good.issue("server", &["localhost", "127.0.0.1"]), ClientCertificates::Ignored);
    let attempt = |settings: &TlsClientSettings| {
        let (mut ours, mut theirs) = (client(settings).filter().unwrap(), server.filter().unwrap());
        talk(&mut ours, &mut theirs, 1000).map(|_| ours.is_ready() && theirs.is_ready())
    };
    let named = |name: &str| TlsClientSettings { server_name: name.into(), ..trusting(&good.ca) };
    assert!(attempt(&trusting(&good.ca)).unwrap());
    assert!(attempt(&named("127.0.0.1")).unwrap());
    let insecure = TlsClientSettings {
        insecure: true,
        server_name: "elsewhere".into(),
        ..TlsClientSettings::default()
    };
    assert!(attempt(&insecure).unwrap());
    for (settings, words) in [
        (trusting(&other.ca), "not trusted"),
        (named("elsewhere"), "not valid for name \"elsewhere\""),
        (named("127.0.0.2"), "not valid for name"),
    ] {
        let (error, side) = attempt(&settings).expect_err(words);
        assert_eq!((error.kind(), side), (io::ErrorKind::InvalidData, "client"));
        assert!(error.to_string().contains(words), "{error}");
    }
    let unusable = |settings: &TlsClientSettings| {
        tacho_net::tls::TlsClient::new(settings).expect_err("unusable").to_string()
    };
    assert!(unusable(&named("a b")).contains("'a b' is neither"));
    assert!(unusable(&trusting(&folder.path().join("x"))).contains("cannot read the CA"));
    let half = TlsClientSettings { cert: Some("x".into()), ..trusting(&good.ca) };
    assert!(unusable(&half).contains("give both files"));
}

#[test]
fn a_server_checks_client_certificates() {
    let folder = tempfile::tempdir().unwrap();
    let good = Authority::new(folder.path(), "good");
    let other = Authority::new(folder.path(), "other");
    let identity = good.issue("server", &["localhost"]);
    let with = |identity: Option<tacho_testkit::net::certificates::Identity>| TlsClientSettings {
        cert: identity.as_ref().map(|identity| identity.cert.clone()),
        key: identity.map(|identity| identity.key),
        ..trusting(&good.ca)
    };
    let known = with(Some(good.issue("client", &["device-1"])));
    let stranger = with(Some(other.issue("stranger", &["device-2"])));
    let anonymous = with(None);
    let required = server(&identity, ClientCertificates::Required(good.ca.clone()));
    let optional = server(&identity, ClientCertificates::Optional(good.ca.clone()));
    let ignored = server(&identity, ClientCertificates::Ignored);
    let attempt = |server: &TlsServer, settings: &TlsClientSettings| {
        let mut ours = client(settings).filter().unwrap();
        talk(&mut ours, &mut server.filter().unwrap(), 1000).is_ok() && ours.is_ready()
    };
    assert!(attempt(&required, &known));
    assert!(attempt(&optional, &known) && attempt(&optional, &anonymous));
    assert!([&known, &stranger, &anonymous].iter().all(|client| attempt(&ignored, client)));
    for (server, settings, at_client, at_server) in [
        (&required, &anonymous, "requires a certificate", "sent no certificate"),
        (&required, &stranger, "does not trust the CA", "not trusted"),
        (&optional, &stranger, "does not trust the CA", "not trusted"),
    ] {
        let mut ours = client(settings).filter().unwrap();
        let (mine, theirs) = failures(&mut ours, &mut server.filter().unwrap());
        assert!(mine.contains(at_client) && theirs.contains(at_server), "{mine}; {theirs}");
    }
}

/// As after a step of the wall clock by hours, which makes certificates old or not valid yet.
#[test]
fn certificates_are_valid_by_the_wall_clock_of_each_handshake_on_both_sides() {
    let folder = tempfile::tempdir().unwrap();
    let ca = Authority::new(folder.path(), "ca");
    let now = ca.issue_for_hours("now", -1..1);
    for (name, hours, words) in
        [("past", -2..-1, "expired"), ("future", 1..2, "not valid yet"), ("present", -1..1, "")]
    {
        let identity = ca.issue_for_hours(name, hours);
        let ignoring = server(&identity, ClientCertificates::Ignored);
        let mut ours = client(&trusting(&ca.ca)).filter().unwrap();
        let requiring = server(&now, ClientCertificates::Required(ca.ca.clone()));
        let settings = TlsClientSettings {
            cert: Some(identity.cert.clone()),
            key: Some(identity.key.clone()),
            ..trusting(&ca.ca)
        };
        let mut known = client(&settings).filter().unwrap();
        if words.is_empty() {
            talk(&mut ours, &mut ignoring.filter().unwrap(), 1000).unwrap();
            talk(&mut known, &mut requiring.filter().unwrap(), 1000).unwrap();
            continue;
        }
        let (mine, _) = failures(&mut ours, &mut ignoring.filter().unwrap());
        assert!(mine.contains(words), "{mine}");
        let (mine, theirs) = failures(&mut known, &mut requiring.filter().unwrap());
        assert!(theirs.contains(words), "{theirs}");
        assert!(mine.contains("refused"), "{mine}");
    }
}

#[test]
fn offered_application_protocols_must_overlap() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new(folder.path(), "ca");
    let server = server(&authority.issue("server", &["localhost"]), ClientCertificates::Ignored);
    let offering = |names: &[&str]| TlsClientSettings {
        alpn: names.iter().map(|name| (*name).to_owned()).collect(),
        ..trusting(&authority.ca)
    };
    for names in [&[][..], &["mqtt"], &["x", "mqtt"]] {
        let mut ours = client(&offering(names)).filter().unwrap();
        talk(&mut ours, &mut server.filter().unwrap(), 1000).unwrap();
        assert!(ours.is_ready());
    }
    let mut ours = client(&offering(&["h2"])).filter().unwrap();
    let (mine, _) = failures(&mut ours, &mut server.filter().unwrap());
    assert!(mine.contains("application protocols"), "{mine}");
}

#[test]
fn a_peer_without_tls_is_named_as_the_cause() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new(folder.path(), "ca");
    let server = server(&authority.issue("server", &["localhost"]), ClientCertificates::Ignored);
    let mut plain = Vec::new();
    let error = server.filter().unwrap().inbound(b"\x10\x0e\0\x04MQTT\x04\x02\0\0\0\0", &mut plain);
    assert!(error.unwrap_err().to_string().contains("does not speak TLS"));
    let mut ours = client(&trusting(&authority.ca)).filter().unwrap();
    ours.outbound(&[], &mut Vec::new()).unwrap();
    let error = ours.inbound(b"HTTP/1.1 400 Bad Request\r\n\r\n", &mut plain);
    assert!(error.unwrap_err().to_string().contains("does not speak TLS"));
    assert!(plain.is_empty());
}

#[test]
fn a_new_certificate_serves_new_connections_and_a_bad_one_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (Authority::new(folder.path(), "old"), Authority::new(folder.path(), "new"));
    let identity = old.issue("server", &["localhost"]);
    let server = server(&identity, ClientCertificates::Ignored);
    let attempt = |authority: &Authority| {
        let (mut ours, mut theirs) =
            (client(&trusting(&authority.ca)).filter().unwrap(), server.filter().unwrap());
        talk(&mut ours, &mut theirs, 1000).map(|_| (ours, theirs))
    };
    let (mut open_client, mut open_server) = attempt(&old).unwrap();
    assert!(server.reload().is_none(), "nothing has changed");

    // A certificate without its key, as in the middle of a renewal; reported once.
    let renewed = new.issue("renewed", &["localhost"]);
    std::fs::copy(&renewed.cert, &identity.cert).unwrap();
    assert!(matches!(server.reload(), Some(Err(TlsError::Unusable { .. }))));
    assert!(server.reload().is_none());
    assert!(attempt(&old).is_ok() && attempt(&new).is_err());

    std::fs::remove_file(&identity.key).unwrap();
    assert!(matches!(server.reload(), Some(Err(TlsError::Read { .. }))));
    assert!(server.reload().is_none());
    assert!(attempt(&old).is_ok());

    std::fs::copy(&renewed.key, &identity.key).unwrap();
    assert!(matches!(server.reload(), Some(Ok(TlsReloaded { judges_anew: false }))));
    assert!(attempt(&old).is_err() && attempt(&new).is_ok());

    // The open connection is not affected.
    let (mut wire, mut plain) = (Vec::new(), Vec::new());
    open_client.outbound(b"still here", &mut wire).unwrap();
    open_server.inbound(&wire, &mut plain).unwrap();
    assert_eq!(plain, b"still here");
}

/// A client with this certificate, connected to the server in memory.
fn connected(server: &TlsServer, ca: &Path, identity: &Identity) -> Result<TlsFilter, String> {
    let settings = TlsClientSettings {
        cert: Some(identity.cert.clone()),
        key: Some(identity.key.clone()),
        ..trusting(ca)
    };
    let (mut ours, mut theirs) = (client(&settings).filter().unwrap(), server.filter().unwrap());
    match talk(&mut ours, &mut theirs, 1000) {
        Ok(_) => Ok(theirs),
        Err((error, _)) => Err(error.to_string()),
    }
}

fn reading_lists(ca: &Authority, lists: Vec<PathBuf>) -> TlsServerSettings {
    let identity = ca.issue("server", &["localhost"]);
    TlsServerSettings {
        cert: identity.cert,
        key: identity.key,
        clients: ClientCertificates::Required(ca.ca.clone()),
        client_crls: lists,
        alpn: Vec::new(),
    }
}

#[test]
fn revoked_certificates_are_refused_and_those_in_use_are_known() {
    let folder = tempfile::tempdir().unwrap();
    let ca = Authority::new(folder.path(), "ca");
    let (first, second) = (ca.issue_to("first", 1), ca.issue_to("second", 2));
    for file in ["list.pem", "list.der"] {
        let list = ca.revoke(file, &[], 2100);
        let server = TlsServer::new(reading_lists(&ca, vec![list.clone()])).unwrap();
        let theirs = connected(&server, &ca.ca, &first).unwrap();
        let peer = theirs.peer_certificates().unwrap();
        assert!(peer.own().windows(5).any(|bytes| bytes == b"first"));
        assert!(server.still_accepts(&peer) && connected(&server, &ca.ca, &second).is_ok());

        // What cannot be used changes nothing, and is named.
        std::fs::write(&list, "0 no list").unwrap();
        let Some(Err(error)) = server.reload() else { panic!("unusable") };
        assert!(error.to_string().contains(&*list.to_string_lossy()), "{error}");
        assert!(server.reload().is_none());
        assert!(server.still_accepts(&peer) && connected(&server, &ca.ca, &second).is_ok());

        ca.revoke(file, &[1], 2100);
        assert!(matches!(server.reload(), Some(Ok(TlsReloaded { judges_anew: true }))));
        assert!(!server.still_accepts(&peer), "{file}");
        let error = connected(&server, &ca.ca, &first).expect_err("revoked");
        assert!(error.contains("revoked"), "{error}");
        let theirs = connected(&server, &ca.ca, &second).unwrap();
        assert!(server.still_accepts(&theirs.peer_certificates().unwrap()));

        // A list that is out of date keeps new clients out, not those that are connected.
        ca.revoke(file, &[1], 2021);
        assert!(matches!(server.reload(), Some(Ok(TlsReloaded { judges_anew: true }))));
        let error = connected(&server, &ca.ca, &second).expect_err("out of date");
        assert!(error.contains("out of date"), "{error}");
        assert!(server.still_accepts(&theirs.peer_certificates().unwrap()));
    }
}

#[test]
fn a_certificate_without_a_list_of_its_issuer_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (ca, other) = (Authority::new(folder.path(), "ca"), Authority::new(folder.path(), "other"));
    let client = ca.issue_to("first", 1);
    let foreign = other.revoke("other.crl", &[], 2100);
    let server = TlsServer::new(reading_lists(&ca, vec![foreign.clone()])).unwrap();
    let error = connected(&server, &ca.ca, &client).expect_err("no list");
    assert!(error.contains("no revocation list of its issuer"), "{error}");
    // With that of its issuer beside it, also in one file, it is accepted.
    let own = ca.revoke("own.crl", &[7], 2100);
    let both = [std::fs::read(&foreign).unwrap(), std::fs::read(&own).unwrap()].concat();
    let joined = folder.path().join("both.crl");
    std::fs::write(&joined, both).unwrap();
    for lists in [vec![foreign, own], vec![joined]] {
        let server = TlsServer::new(reading_lists(&ca, lists)).unwrap();
        connected(&server, &ca.ca, &client).unwrap();
    }
    let empty = folder.path().join("empty.crl");
    std::fs::write(&empty, "").unwrap();
    let error = TlsServer::new(reading_lists(&ca, vec![empty])).expect_err("no list in it");
    assert!(error.to_string().contains("no revocation list in"), "{error}");
}

#[test]
fn sessions_resume() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new(folder.path(), "ca");
    let server = server(&authority.issue("server", &["localhost"]), ClientCertificates::Ignored);
    let client = client(&trusting(&authority.ca));
    // A resumed session needs no certificate.
    let (is_done, first, _) = handshake(&client, &server);
    let (is_done_again, second, _) = handshake(&client, &server);
    assert!(is_done && is_done_again && second + 200 < first, "{first}, then {second} bytes");
    let full = TlsClientSettings { full_handshakes: true, ..trusting(&authority.ca) };
    let full = TlsClient::new(&full).unwrap();
    for _ in 0..2 {
        let (is_done, bytes, _) = handshake(&full, &server);
        assert!(is_done && second + 200 < bytes, "{bytes} bytes, where a resumed one has {second}");
    }
}

#[test]
fn a_resumed_session_keeps_the_certificate_of_its_client_until_it_is_revoked() {
    let folder = tempfile::tempdir().unwrap();
    let ca = Authority::new(folder.path(), "ca");
    let identity = ca.issue_to("first", 1);
    let list = ca.revoke("list.crl", &[], 2100);
    let server = TlsServer::new(reading_lists(&ca, vec![list])).unwrap();
    let client = client(&TlsClientSettings {
        cert: Some(identity.cert),
        key: Some(identity.key),
        ..trusting(&ca.ca)
    });
    let (_, first, _) = handshake(&client, &server);
    let (is_done, second, theirs) = handshake(&client, &server);
    assert!(is_done && second + 200 < first, "{first}, then {second} bytes");
    let own = theirs.peer_certificates().unwrap().own().to_vec();
    assert!(own.windows(5).any(|bytes| bytes == b"first"));
    // A session of before is not resumed by other lists.
    ca.revoke("list.crl", &[1], 2100);
    assert!(matches!(server.reload(), Some(Ok(TlsReloaded { judges_anew: true }))));
    let (is_done, third, theirs) = handshake(&client, &server);
    assert!(!is_done && third + 200 > first && theirs.peer_certificates().is_none());
}

#[test]
fn early_output_waits_and_too_much_of_it_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new(folder.path(), "ca");
    let server = server(&authority.issue("server", &["localhost"]), ClientCertificates::Ignored);
    let client = client(&trusting(&authority.ca));
    let (mut ours, mut theirs) = (client.filter().unwrap(), server.filter().unwrap());
    let mut wire = Vec::new();
    ours.outbound(&vec![7; 200_000], &mut wire).unwrap();
    theirs.inbound(&wire, &mut Vec::new()).unwrap();
    let (_, got) = talk(&mut ours, &mut theirs, 1000).unwrap();
    assert_eq!(got, vec![7; 200_000]);
    let mut hasty = client.filter().unwrap();
    let refused = hasty.outbound(&vec![7; 2_000_000], &mut wire).unwrap_err();
    assert!(refused.to_string().contains("before the TLS handshake"), "{refused}");
}

#[test]
fn a_close_notify_ends_the_input() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new(folder.path(), "ca");
    let server = server(&authority.issue("server", &["localhost"]), ClientCertificates::Ignored);
    let (mut ours, mut theirs) =
        (client(&trusting(&authority.ca)).filter().unwrap(), server.filter().unwrap());
    talk(&mut ours, &mut theirs, 1000).unwrap();
    let (mut wire, mut plain) = (Vec::new(), Vec::new());
    ours.outbound(b"last bytes", &mut wire).unwrap();
    ours.finish(&mut wire);
    theirs.inbound(&wire, &mut plain).unwrap();
    assert_eq!(plain, b"last bytes");
    assert!(theirs.peer_closed());
    let mut wire = Vec::new();
    theirs.finish(&mut wire);
    ours.inbound(&wire, &mut plain).unwrap();
    assert!(ours.peer_closed());
}

fn secure_web_sockets() -> (impl Fn() -> Pair, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new(folder.path(), "ca");
    let identity = authority.issue("server", &["localhost"]);
    let settings = TlsServerSettings {
        cert: identity.cert,
        key: identity.key,
        clients: ClientCertificates::Ignored,
        client_crls: Vec::new(),
        alpn: Vec::new(),
    };
    let (tls, below) = (client(&trusting(&authority.ca)), TlsServer::new(settings).unwrap());
    let ws = WsClient { host: "a".into(), path: "/x".into(), protocol: "mqtt".into() };
    let above = WsServer { path: "/x".into(), protocols: vec!["mqtt".into()], origins: None };
    let make = move || -> Pair {
        (
            Box::new(Layers::new(tls.filter().unwrap(), ws.filter())),
            Box::new(Layers::new(below.filter().unwrap(), above.filter())),
        )
    };
    (make, folder)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn layers_carry_everything_in_any_pieces(
        messages in vec((any::<bool>(), vec(any::<u8>(), 0..40_000)), 0..8),
        piece in 1_usize..3000,
    ) {
        let (make, _folder) = secure_web_sockets();
        let (mut ours, mut theirs) = make();
        prop_assert!(talk(&mut *ours, &mut *theirs, piece).is_ok());
        prop_assert!(ours.is_ready() && theirs.is_ready());
        let (mut sent_up, mut got_up) = (Vec::new(), Vec::new());
        let (mut sent_down, mut got_down) = (Vec::new(), Vec::new());
        for (up, bytes) in messages {
            let mut wire = Vec::new();
            let (from, to, sent, got) = match up {
                true => (&mut ours, &mut theirs, &mut sent_up, &mut got_up),
                false => (&mut theirs, &mut ours, &mut sent_down, &mut got_down),
            };
            from.outbound(&bytes, &mut wire).unwrap();
            sent.extend(bytes);
            for part in wire.chunks(piece) {
                to.inbound(part, got).unwrap();
            }
        }
        prop_assert!(sent_up == got_up && sent_down == got_down);
        let mut wire = Vec::new();
        ours.finish(&mut wire);
        theirs.inbound(&wire, &mut Vec::new()).unwrap();
        prop_assert!(theirs.peer_closed());
    }

    #[test]
    fn damaged_bytes_are_safe(
        noise in vec(any::<u8>(), 1..400),
        at in 0_usize..3000,
        opened in any::<bool>(),
    ) {
        let (make, _folder) = secure_web_sockets();
        let (mut ours, mut theirs) = make();
        if opened {
            talk(&mut *ours, &mut *theirs, 1000).unwrap();
        }
        let mut wire = Vec::new();
        ours.outbound(&[1; 3000], &mut wire).unwrap();
        let at = at.min(wire.len());
        wire.splice(at..at, noise);
        for (filter, bytes) in [(&mut theirs, wire.clone()), (&mut ours, wire)] {
            for part in bytes.chunks(333) {
                let _ = filter.inbound(part, &mut Vec::new());
                let _ = filter.outbound(b"x", &mut Vec::new());
            }
            filter.finish(&mut Vec::new());
        }
    }
}
