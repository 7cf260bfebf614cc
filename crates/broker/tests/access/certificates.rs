//! Clients log in with their certificates.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::SystemTime;

use tacho_codec::{Connect, ConnectProperties, QoS, ReasonCode, Version};
use tacho_net::tls::TlsClientSettings;
use tacho_testkit::net::certificates::{Authority, Identity, client, trusting};
use tacho_testkit::{Client, TestBroker, connect, through, wait_until};

use super::reload::reload;
use super::{Files, login};

const NOT_AUTHORIZED: ReasonCode = ReasonCode::NOT_AUTHORIZED;

/// A CA, and a broker whose second listener takes certificates of it.
pub(super) struct Secured {
    files: Files,
    pub(super) ca: Authority,
    list: PathBuf,
    broker: TestBroker,
}

impl Secured {
    /// `listener` are further keys of the listener, `more` further sections.
    pub(super) fn start(files: Files, listener: &str, more: &str) -> Self {
        let folder = files.path("pki");
        fs::create_dir(&folder).unwrap();
        let ca = Authority::new(&folder, "ca");
        let identity = ca.issue("server", &["localhost"]);
        let list = ca.revoke("list.crl", &[], 2100);
        let text = format!(
            "shards = 2\n{more}\n[tls]\ncheck_s = 0\ncert = {:?}\nkey = {:?}\nclient_ca = {:?}\n\
             client_crl = {list:?}\n[[listeners]]\naddress = '127.0.0.1:0'\ntransport = 'tls'\n\
             {listener}\n",
            identity.cert, identity.key, ca.ca
        );
        let broker = TestBroker::configured(&text);
        Self { files, ca, list, broker }
    }

    fn address(&self) -> SocketAddr {
        self.broker.addresses()[1]
    }

    fn client(&self, identity: Option<&Identity>, version: Version) -> Client {
        let settings = TlsClientSettings {
            cert: identity.map(|identity| identity.cert.clone()),
            key: identity.map(|identity| identity.key.clone()),
            ..trusting(&self.ca.ca)
        };
        through(Box::new(client(&settings).filter().unwrap()), self.address(), version)
    }

    /// The reason of CONNACK.
    pub(super) fn answer(&self, identity: Option<&Identity>, connect: &Connect<'_>) -> ReasonCode {
        self.client(identity, connect.version).connect(connect).1
    }
}

#[test]
fn the_certificate_names_the_user_for_rules_sessions_and_bans() {
    let files = Files::new(&[], Some("user pump\ntopic own/#\n"));
    let bans = files.path("bans.toml");
    fs::write(&bans, "").unwrap();
    let access = format!("[access]\nacl_file = {:?}\nban_file = {bans:?}\n", files.path("acl"));
    let secured = Secured::start(
        files,
        "require_client_certificate = true\ncertificate_user = 'cn'\n",
        &access,
    );
    let (pump, other) = (secured.ca.issue_to("pump", 1), secured.ca.issue_to("other", 2));
    for version in [Version::V31, Version::V311, Version::V5] {
        let mut connected = secured.client(Some(&pump), version);
        // The name and password of CONNECT mean nothing.
        let reason = connected.connect(&login("c", version, "other", "x")).1;
        assert_eq!(reason, ReasonCode::SUCCESS);
        assert!(!connected.subscribe("own/1", QoS::AtMostOnce).is_error());
        assert!(connected.subscribe("else", QoS::AtMostOnce).is_error());
        connected.publish("own/1", b"x", QoS::AtMostOnce, false);
        assert_eq!(connected.receive().payload, b"x");
        connected.disconnect();
    }
    let mut pumping = secured.client(Some(&pump), Version::V5);
    pumping.connect(&connect("c", Version::V5));
    assert_eq!(secured.answer(Some(&other), &connect("c", Version::V5)), NOT_AUTHORIZED);
    let mut nameless = secured.client(Some(&other), Version::V5);
    nameless.connect(&connect("d", Version::V5));
    assert!(nameless.subscribe("own/1", QoS::AtMostOnce).is_error());
    pumping.ping();
    assert_eq!(secured.broker.counter("logins_certificate_total"), 5);
    fs::write(&bans, "[[bans]]\nuser = 'pump'\n").unwrap();
    secured.broker.reload_access();
    assert_eq!(pumping.expect_disconnect(), ReasonCode::ADMINISTRATIVE_ACTION);
    let refused = secured.answer(Some(&pump), &connect("c", Version::V5));
    assert_eq!(refused, ReasonCode::BANNED);
    nameless.ping();
}

#[test]
fn a_certificate_without_one_clear_name_lets_nobody_in() {
    let listener = "require_client_certificate = true\ncertificate_user = 'san_uri'\n";
    let secured = Secured::start(Files::new(&[], None), listener, "");
    let none = secured.ca.issue_to("pump", 1);
    let nul = secured.ca.issue_to("pump\0x", 2);
    assert_eq!(secured.answer(Some(&none), &connect("c", Version::V5)), NOT_AUTHORIZED);
    assert_eq!(secured.answer(Some(&none), &connect("c", Version::V311)), NOT_AUTHORIZED);
    let listener = "require_client_certificate = true\ncertificate_user = 'cn'\n";
    let by_name = Secured::start(Files::new(&[], None), listener, "");
    let of_other_ca = by_name.ca.issue_to("pump\0x", 3);
    assert_eq!(by_name.answer(Some(&of_other_ca), &connect("c", Version::V5)), NOT_AUTHORIZED);
    // One of another CA does not come so far.
    by_name.client(Some(&nul), Version::V5).expect_closed();
    assert_eq!(secured.broker.counter("refused_logins_certificate_total"), 2);
    assert_eq!(by_name.broker.counter("refused_logins_certificate_total"), 1);
}

#[test]
fn the_client_identifier_may_be_tied_to_the_certificate() {
    let listener = "require_client_certificate = true\ncertificate_user = 'cn'\n";
    let equal = format!("{listener}certificate_client_id = 'equal'\n");
    let secured = Secured::start(Files::new(&[], None), &equal, "");
    let pump = secured.ca.issue_to("pump", 1);
    let reserved = secured.ca.issue_to("$bridge/b/0", 2);
    let invalid = ReasonCode::CLIENT_IDENTIFIER_NOT_VALID;
    assert_eq!(secured.answer(Some(&pump), &connect("pump", Version::V5)), ReasonCode::SUCCESS);
    assert_eq!(secured.answer(Some(&pump), &connect("other", Version::V5)), invalid);
    assert_eq!(secured.answer(Some(&pump), &connect("other", Version::V311)), invalid);
    assert_eq!(secured.answer(Some(&reserved), &connect("", Version::V5)), invalid);
    // One that is not given is the name: the sessions are the same.
    let lasting = |client_id| Connect {
        clean_start: false,
        properties: ConnectProperties { session_expiry_s: Some(60), ..Default::default() },
        ..connect(client_id, Version::V5)
    };
    for (client_id, is_there) in [("pump", false), ("", true), ("pump", true)] {
        let mut connected = secured.client(Some(&pump), Version::V5);
        let answer = connected.connect(&lasting(client_id));
        assert_eq!(answer, (is_there, ReasonCode::SUCCESS), "{client_id}");
        connected.disconnect();
    }
    let replace = format!("{listener}certificate_client_id = 'replace'\n");
    let secured = Secured::start(Files::new(&[], None), &replace, "");
    let pump = secured.ca.issue_to("pump", 1);
    for (client_id, is_there) in [("a", false), ("b", true), ("", true)] {
        let mut connected = secured.client(Some(&pump), Version::V5);
        let answer = connected.connect(&lasting(client_id));
        assert_eq!(answer, (is_there, ReasonCode::SUCCESS), "{client_id}");
        connected.disconnect();
    }
}

#[test]
fn certificate_and_password_may_both_be_needed() {
    let files = Files::new(&[("pump", "word"), ("other", "word")], None);
    let section = files.section();
    let listener = "certificate_user = 'cn'\ncertificate_password = true\n";
    let secured = Secured::start(files, listener, &section);
    let pump = secured.ca.issue_to("pump", 1);
    let v5 = Version::V5;
    let word = |user| login("c", v5, user, "word");
    assert_eq!(secured.answer(Some(&pump), &word("pump")), ReasonCode::SUCCESS);
    assert_eq!(secured.answer(Some(&pump), &word("other")), NOT_AUTHORIZED);
    assert_eq!(secured.answer(None, &word("pump")), NOT_AUTHORIZED);
    assert_eq!(secured.answer(Some(&pump), &connect("c", v5)), NOT_AUTHORIZED);
    let wrong = secured.answer(Some(&pump), &login("c", v5, "pump", "x"));
    assert_eq!(wrong, ReasonCode::BAD_USER_NAME_OR_PASSWORD);
    assert_eq!(secured.broker.counter("refused_logins_certificate_total"), 2);
    // The user is in the password file, and its end counts.
    let mut connected = secured.client(Some(&pump), v5);
    connected.connect(&word("pump"));
    secured.files.set_users(&[("other", "word")]);
    secured.broker.reload_access();
    assert_eq!(connected.expect_disconnect(), NOT_AUTHORIZED);
}

#[test]
fn without_a_certificate_a_client_logs_in_otherwise_or_not_at_all() {
    let files = Files::new(&[("ann", "word")], None);
    let section = files.section();
    let secured = Secured::start(files, "certificate_user = 'cn'\n", &section);
    let v5 = Version::V5;
    let ann = login("c", v5, "ann", "word");
    assert_eq!(secured.answer(None, &ann), ReasonCode::SUCCESS);
    assert_eq!(secured.answer(None, &connect("c", v5)), NOT_AUTHORIZED);
    let alone = Secured::start(Files::new(&[], None), "certificate_user = 'cn'\n", "");
    assert_eq!(alone.answer(None, &ann), NOT_AUTHORIZED);
    assert_eq!(alone.answer(None, &connect("c", v5)), NOT_AUTHORIZED);
    assert_eq!(alone.broker.counter("refused_logins_certificate_total"), 2);
    let open = "certificate_user = 'cn'\nallow_anonymous = true\n";
    let open = Secured::start(Files::new(&[], None), open, "");
    assert_eq!(open.answer(None, &connect("c", v5)), ReasonCode::SUCCESS);
    // The listener on loopback without certificates stays as it is.
    assert_eq!(super::answer(&alone.broker, &connect("c", v5)), ReasonCode::SUCCESS);
}

#[test]
fn clients_whose_certificate_is_revoked_are_disconnected_and_others_stay() {
    let listener = "require_client_certificate = true\ncertificate_user = 'cn'\n";
    let secured = Secured::start(Files::new(&[], None), listener, "");
    let identities: Vec<Identity> =
        (1..5).map(|serial| secured.ca.issue_to(&format!("pump-{serial}"), serial)).collect();
    let mut clients: Vec<Client> = identities
        .iter()
        .enumerate()
        .map(|(index, identity)| {
            let mut client = secured.client(Some(identity), Version::V5);
            let reason = client.connect(&connect(&format!("c{index}"), Version::V5)).1;
            assert_eq!(reason, ReasonCode::SUCCESS);
            client
        })
        .collect();
    fs::write(&secured.list, "no list").unwrap();
    assert_eq!(secured.broker.reload_certificates().unusable, 1);
    clients.iter_mut().for_each(Client::ping);
    secured.ca.revoke("list.crl", &[2, 3], 2100);
    assert_eq!(secured.broker.reload_certificates().new, 1);
    for index in [1, 2] {
        assert_eq!(clients[index].expect_disconnect(), NOT_AUTHORIZED);
        clients[index].expect_closed();
        secured.client(Some(&identities[index]), Version::V5).expect_closed();
    }
    for index in [0, 3] {
        clients[index].ping();
    }
    assert_eq!(secured.broker.counter("ended_certificates_total"), 2);
    let back = secured.answer(Some(&identities[0]), &connect("again", Version::V5));
    assert_eq!(back, ReasonCode::SUCCESS);
    wait_until("refused handshakes", || secured.broker.counter("failed_handshakes_total") >= 2);
}

/// A change of rules is no reason to verify certificates: one that has expired since the lists were
/// read lasts until they change.
#[test]
fn certificates_are_judged_once_for_each_change_of_the_lists() {
    let files = Files::new(&[], Some("topic a\n"));
    let access = format!("[access]\nacl_file = {:?}\n", files.path("acl"));
    let secured = Secured::start(files, "require_client_certificate = true\n", &access);
    let now_s = || SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let end_s = now_s() + 4;
    let brief = secured.ca.issue_until("brief", 1, end_s);
    let mut client = secured.client(Some(&brief), Version::V5);
    assert_eq!(client.connect(&connect("c", Version::V5)).1, ReasonCode::SUCCESS);
    let judge_anew = |revoked: u64| {
        secured.ca.revoke("list.crl", &[revoked], 2100);
        assert_eq!(secured.broker.reload_certificates().new, 1);
    };
    judge_anew(8);
    client.ping();
    wait_until("the end of the certificate", || now_s() > end_s);
    secured.files.set_acl("topic b\n");
    reload(&secured.broker, 2);
    (0..3).for_each(|_| client.ping());
    judge_anew(9);
    assert_eq!(client.expect_disconnect(), NOT_AUTHORIZED);
}
