//! Clients log in by a backend behind HTTP: one that is right, slow, wrong, dead, and back.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{SystemTime, UNIX_EPOCH};

use tacho_codec::{Connect, ConnectProperties, Packet, QoS, ReasonCode, Version};
use tacho_net::tls::ClientCertificates;
use tacho_testkit::http::{StubAnswer, StubReply, StubRequest, StubService};
use tacho_testkit::net::certificates::{Authority, server};
use tacho_testkit::{Client, TestBroker, connect, tunnel, wait_until};

use super::certificates::Secured;
use super::{Files, answer, login, metric};

const WRONG: ReasonCode = ReasonCode::BAD_USER_NAME_OR_PASSWORD;
const UNAVAILABLE: ReasonCode = ReasonCode::SERVER_UNAVAILABLE;
const SUCCESS: ReasonCode = ReasonCode::SUCCESS;
const V5: Version = Version::V5;

/// A backend that does this with each request.
fn backend(answering: impl FnMut(&StubRequest) -> StubReply + Send + 'static) -> StubService {
    StubService::answering(TcpListener::bind("127.0.0.1:0").unwrap(), answering)
}

fn says(body: &str) -> StubReply {
    StubReply::Answer(StubAnswer::new(200, body))
}

fn status(status: u16) -> StubReply {
    StubReply::Answer(StubAnswer::new(status, "no JSON"))
}

/// A backend for which a user's password is its name.
fn by_name(request: &StubRequest) -> StubReply {
    let fields: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
    says(match fields["user"] == fields["password"] {
        true => r#"{"result":"allow"}"#,
        false => r#"{"result":"deny"}"#,
    })
}

/// The section of a configuration that names a backend; `keys` come before its tables.
fn section(address: SocketAddr, keys: &str) -> String {
    format!(
        "[access.http]\nurl = 'http://{address}/login?broker=one'\n{keys}\n[access.http.fields]\n\
         user = '%u'\npassword = '%P'\n"
    )
}

fn asking(service: &StubService, keys: &str) -> TestBroker {
    let section = section(service.address(), keys);
    TestBroker::with_metrics(&format!("shards = 2\n{section}"))
}

fn requests(broker: &TestBroker, result: &str) -> Option<u64> {
    metric(broker, &format!("tacho_login_backend_requests_total{{result=\"{result}\"}}"))
}

fn condition(broker: &TestBroker) -> Option<u64> {
    metric(broker, "tacho_login_backend_condition")
}

#[test]
fn a_backend_says_who_may_log_in_and_gets_what_the_configuration_says() {
    let service = backend(|request| {
        let fields: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
        match fields["user"].as_str().unwrap() {
            "ann" => says(r#"{"result":"allow"}"#),
            "bob" => StubReply::Answer(StubAnswer::new(204, "")),
            "eve" => says(r#"{"result":"deny"}"#),
            "carl" => status(401),
            "dora" => status(403),
            _ => says(r#"{"result":"ignore"}"#),
        }
    });
    let files = Files::new(&[], None);
    std::fs::write(files.path("secret"), "s3cret\n").unwrap();
    let more = format!(
        "client = 'dev-%c'\naddress = '%a'\nlistener = '%l'\ncertificate = '%n'\n\
         [access.http.headers]\nx-broker = 'one'\n[access.http.secret_headers]\n\
         authorization = {{ file = {:?}, prefix = 'Bearer ' }}\n",
        files.path("secret")
    );
    let section = section(service.address(), "");
    let broker = TestBroker::with_metrics(&format!("shards = 2\n{section}{more}"));
    for version in [Version::V31, Version::V311, Version::V5] {
        assert_eq!(answer(&broker, &login("c", version, "ann", "a word")), SUCCESS);
        for refused in ["eve", "carl", "dora", "otto"] {
            let reason = answer(&broker, &login("c", version, refused, "x"));
            assert_eq!(reason, WRONG, "{refused}");
        }
    }
    assert_eq!(answer(&broker, &login("c", V5, "bob", "x")), SUCCESS);
    let first = &service.requests()[0];
    assert_eq!(first.path, "/login?broker=one");
    assert_eq!(first.header("content-type"), "application/json");
    assert_eq!((first.header("x-broker"), first.header("authorization")), ("one", "Bearer s3cret"));
    let fields: serde_json::Value = serde_json::from_slice(&first.body).unwrap();
    let sent = serde_json::json!({
        "user": "ann", "password": "a word", "client": "dev-c", "address": "127.0.0.1",
        "listener": "127.0.0.1:0", "certificate": null,
    });
    assert_eq!(fields, sent);
    // What there is no answer for is asked once: the others are remembered.
    assert_eq!(service.requests().len(), 6);
    assert_eq!(broker.counter("backend_answers_remembered_total"), 10);
    assert_eq!(broker.counter("logins_verified_total"), 4);
    assert_eq!(broker.counter("refused_logins_wrong_total"), 12);
    let counts = ["allow", "deny", "ignore"].map(|result| requests(&broker, result).unwrap());
    assert_eq!((counts, condition(&broker)), ([2, 3, 1], Some(0)));
    assert_eq!(metric(&broker, "tacho_login_backend_seconds_count"), Some(6));
}

#[test]
fn each_listener_has_the_backend_that_it_names_and_none_of_them_another_ones_answers() {
    let people = backend(|_| says(r#"{"result":"allow"}"#));
    let devices =
        backend(|request| match String::from_utf8_lossy(&request.body).contains("down") {
            true => status(503),
            false => says(r#"{"result":"deny"}"#),
        });
    let common = backend(|_| says(r#"{"result":"ignore"}"#));
    let entry = |service: &StubService, keys: &str| {
        let url = format!("http://{}/", service.address());
        format!(
            "[[access.http]]\nurl = '{url}'\nretries_max = 0\n{keys}\n\
             fields = {{ user = '%u', password = '%P' }}\n"
        )
    };
    let listener =
        |name: &str| format!("[[listeners]]\naddress = '127.0.0.1:0'\nlogin_backend = '{name}'\n");
    let text = [
        "shards = 2\n".to_owned(),
        entry(&people, "name = 'people'"),
        entry(&common, ""),
        entry(&devices, "name = 'devices'"),
        listener("people"),
        listener("devices"),
        listener("none"),
    ];
    let broker = TestBroker::with_metrics(&text.concat());
    let answers = |user: &str| -> Vec<ReasonCode> {
        let at = |&address: &SocketAddr| {
            let id = format!("{user}{}", address.port());
            Client::open(address, V5).connect(&login(&id, V5, user, "x")).1
        };
        broker.addresses().iter().map(at).collect()
    };
    // The last one is on loopback and has no logins: a name is a claim without effect.
    assert_eq!(answers("ann"), [WRONG, SUCCESS, WRONG, SUCCESS]);
    // What is remembered is the same login to each of them.
    assert_eq!(answers("ann"), [WRONG, SUCCESS, WRONG, SUCCESS]);
    assert_eq!(broker.counter("backend_answers_remembered_total"), 3);
    let asked = [&common, &people, &devices].map(|service| service.requests().len());
    assert_eq!(asked, [1, 1, 1]);
    assert_eq!(answers("down"), [WRONG, SUCCESS, UNAVAILABLE, SUCCESS]);
    let of =
        |name: &str, labels: &str| metric(&broker, &format!("tacho_login_backend_{name}{labels}"));
    let requests = |labels: &str| of("requests_total", labels);
    assert_eq!(requests("{backend=\"people\",result=\"allow\"}"), Some(2));
    assert_eq!(requests("{backend=\"devices\",result=\"deny\"}"), Some(1));
    assert_eq!(requests("{backend=\"devices\",result=\"no_answer\"}"), Some(1));
    assert_eq!(requests("{result=\"ignore\"}"), Some(2));
    let conditions = ["{backend=\"people\"}", "{backend=\"devices\"}", ""];
    let conditions = conditions.map(|labels| of("condition", labels));
    assert_eq!(conditions, [Some(0), Some(1), Some(0)]);
    assert_eq!(of("seconds_count", "{backend=\"devices\"}"), Some(2));
}

#[test]
fn clients_without_credentials_are_not_asked_about() {
    let service = backend(by_name);
    let open = "[[listeners]]\naddress = '127.0.0.1:0'\nallow_anonymous = true\n";
    let section = section(service.address(), "");
    let broker = TestBroker::configured(&format!("shards = 2\n{section}{open}"));
    assert_eq!(answer(&broker, &connect("c", V5)), ReasonCode::NOT_AUTHORIZED);
    // Many directories take an empty password for a login without one.
    assert_eq!(answer(&broker, &login("c", V5, "ann", "")), WRONG);
    let nameless = Connect { username: Some("ann"), ..connect("c", V5) };
    assert_eq!(answer(&broker, &nameless), WRONG);
    // No JSON can have it.
    let odd = Connect { username: Some("ann"), password: Some(b"\xff"), ..connect("c", V5) };
    assert_eq!(answer(&broker, &odd), WRONG);
    let to_open = |connect: &Connect<'_>| {
        Client::open(broker.addresses()[1], connect.version).connect(connect).1
    };
    assert_eq!(to_open(&connect("d", V5)), SUCCESS);
    assert!(service.requests().is_empty());
    assert_eq!(to_open(&login("d", V5, "ann", "x")), WRONG);
    assert_eq!(to_open(&login("d", V5, "ann", "ann")), SUCCESS);
    assert_eq!(service.requests().len(), 2);
}

#[test]
fn fields_may_be_in_the_query_or_in_a_form() {
    let service = backend(|_| says(r#"{"result":"allow"}"#));
    for keys in ["method = 'get'", "format = 'form'"] {
        let broker = asking(&service, keys);
        assert_eq!(answer(&broker, &login("c", V5, "a&b=c", "p#1 %u")), SUCCESS, "{keys}");
    }
    let requests = service.requests();
    let encoded = "password=p%231%20%25u&user=a%26b%3Dc";
    assert_eq!(requests[0].path, format!("/login?broker=one&{encoded}"));
    assert!(requests[0].body.is_empty());
    assert_eq!(requests[1].path, "/login?broker=one");
    assert_eq!(requests[1].body, encoded.as_bytes());
    assert_eq!(requests[1].header("content-type"), "application/x-www-form-urlencoded");
}

#[test]
fn rules_of_an_answer_are_asked_first_and_superusers_may_do_everything() {
    let service = backend(|request| {
        says(match String::from_utf8_lossy(&request.body).contains("root") {
            true => r#"{"result":"allow","is_superuser":true}"#,
            false => r#"{"result":"allow","acl":[{"permission":"allow","topic":"own/%c"}]}"#,
        })
    });
    let files = Files::new(&[], Some("user ann\ntopic all\n"));
    let section = section(service.address(), "");
    let acl = format!("[access]\nacl_file = {:?}\n", files.path("acl"));
    let broker = TestBroker::configured(&format!("shards = 2\n{acl}{section}"));
    let mut ann = broker.client(V5);
    assert_eq!(ann.connect(&login("c", V5, "ann", "x")).1, SUCCESS);
    for (filter, is_granted) in [("own/c", true), ("all", true), ("own/d", false), ("#", false)] {
        let answer = ann.subscribe(filter, QoS::AtLeastOnce);
        assert_eq!(!answer.is_error(), is_granted, "{filter}");
    }
    let mut root = broker.client(V5);
    assert_eq!(root.connect(&login("r", V5, "root", "x")).1, SUCCESS);
    assert!(!root.try_publish("own/c", b"x", QoS::AtLeastOnce).is_error());
    assert!(!root.subscribe("#", QoS::AtLeastOnce).is_error());
    assert_eq!(ann.receive_and_ack().payload, b"x");
    // A remembered answer has the rules, too; they are not for a name that would widen them.
    let mut again = broker.client(V5);
    assert_eq!(again.connect(&login("d", V5, "ann", "x")).1, SUCCESS);
    assert!(!again.subscribe("own/d", QoS::AtLeastOnce).is_error());
    assert!(again.subscribe("own/c", QoS::AtLeastOnce).is_error());
    let before = service.requests().len();
    assert_eq!(answer(&broker, &login("+", V5, "ann", "x")), WRONG);
    assert_eq!(answer(&broker, &login("+", V5, "ann", "x")), WRONG);
    assert!(service.requests().len() <= before + 1);
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

#[test]
fn a_login_ends_when_the_answer_says_so() {
    let end_s = now_s() + 3;
    let mut ends_s = vec![end_s].into_iter();
    let service = backend(move |request| {
        let is_over = String::from_utf8_lossy(&request.body).contains("bob");
        let end_s = if is_over { now_s() } else { ends_s.next().unwrap_or(end_s + 600) };
        says(&format!(r#"{{"result":"allow","expire_at":{end_s}}}"#))
    });
    let broker = asking(&service, "remember_allowed_s = 600");
    // The second time by the remembered answer.
    let mut client = broker.client(V5);
    assert_eq!(client.connect(&login("c", V5, "ann", "x")).1, SUCCESS);
    client.disconnect();
    let mut client = broker.client(V5);
    assert_eq!(client.connect(&login("c", V5, "ann", "x")).1, SUCCESS);
    assert_eq!(service.requests().len(), 1);
    assert_eq!(client.expect_disconnect(), ReasonCode::NOT_AUTHORIZED);
    assert!(now_s() >= end_s);
    assert_eq!(broker.counter("ended_tokens_total"), 1);
    // It may begin anew.
    let mut again = broker.client(V5);
    assert_eq!(again.connect(&login("c", V5, "ann", "x")).1, SUCCESS);
    assert_eq!(service.requests().len(), 2);
    again.ping();
    assert_eq!(answer(&broker, &login("d", V5, "bob", "x")), WRONG);
}

#[test]
fn answers_are_remembered_for_their_time_and_only_for_what_was_sent() {
    let service = backend(by_name);
    let broker = asking(&service, "remember_denied_s = 1\nconnections_max = 1");
    let one = |password: &str| answer(&broker, &login("c", V5, "ann", password));
    let begun = now_s();
    for _ in 0..5 {
        assert_eq!((one("ann"), one("guess")), (SUCCESS, WRONG));
    }
    assert!(service.requests().len() == 2 || now_s() > begun);
    // Another password is another question.
    let before = service.requests().len();
    assert_eq!(one("other guess"), WRONG);
    assert!(service.requests().len() > before);
    // A refusal is forgotten soon.
    let before = service.requests().len();
    wait_until("another request", || {
        assert_eq!(one("guess"), WRONG);
        service.requests().len() > before
    });
    assert_eq!(service.connections(), 1, "connections are kept");
    let forgetful = asking(&service, "remember_allowed_s = 0");
    let before = service.requests().len();
    for _ in 0..3 {
        assert_eq!(answer(&forgetful, &login("c", V5, "ann", "ann")), SUCCESS);
    }
    assert_eq!(service.requests().len(), before + 3);
}

#[test]
fn answers_that_cannot_be_used_and_silence_refuse_logins() {
    let large = format!(r#"{{"result":"allow","x":"{}"}}"#, "x".repeat(300_000));
    let mut elsewhere = StubAnswer::new(302, "");
    elsewhere.headers.push("Location: /other".to_owned());
    for reply in [
        says("no JSON"),
        says(""),
        says(r#"{"result":"perhaps"}"#),
        says(r#"{"result":"allow","acl":7}"#),
        says(&large),
        status(500),
        status(404),
        StubReply::Answer(elsewhere),
        status(503),
        StubReply::Close,
        StubReply::Silence,
    ] {
        let shown = format!("{reply:?}").chars().take(80).collect::<String>();
        let is_silence = matches!(&reply, StubReply::Close | StubReply::Silence)
            || matches!(&reply, StubReply::Answer(answer) if answer.status == 503);
        let service = backend(move |_| reply.clone());
        let broker = asking(&service, "timeout_ms = 300\nretries_max = 0");
        assert_eq!(answer(&broker, &login("c", V5, "ann", "ann")), UNAVAILABLE, "{shown}");
        assert_eq!(answer(&broker, &login("c", Version::V311, "ann", "x")), UNAVAILABLE);
        let result = if is_silence { "no_answer" } else { "unusable" };
        assert_eq!(requests(&broker, result), Some(2), "{shown}");
        assert_eq!(condition(&broker), Some(1), "{shown}");
        assert_eq!(broker.counter("refused_logins_unavailable_total"), 2);
        assert_eq!(broker.counter("refused_logins_wrong_total"), 0);
    }
}

#[test]
fn requests_without_an_answer_are_repeated() {
    let mut replies =
        vec![StubReply::Close, status(503), says(r#"{"result":"allow"}"#)].into_iter();
    let service = backend(move |_| replies.next().unwrap_or(StubReply::Close));
    let broker = asking(&service, "retries_max = 2");
    assert_eq!(answer(&broker, &login("c", V5, "ann", "x")), SUCCESS);
    assert_eq!(service.requests().len(), 3);
    assert_eq!(metric(&broker, "tacho_login_backend_retries_total"), Some(2));
    assert_eq!((requests(&broker, "allow"), condition(&broker)), (Some(1), Some(0)));
    // No more often than it may be.
    assert_eq!(answer(&broker, &login("c", V5, "bob", "x")), UNAVAILABLE);
    assert_eq!(service.requests().len(), 6);
}

#[test]
fn a_backend_that_was_away_is_asked_again_and_left_alone_meanwhile() {
    let service = backend(by_name);
    let address = service.address();
    let keys = "retries_max = 0\nfailures_max = 3\npause_s = 1";
    let broker = asking(&service, keys);
    let ann = |client_id: &str| answer(&broker, &login(client_id, V5, client_id, client_id));
    assert_eq!(ann("before"), SUCCESS);
    service.stop();
    for client_id in ["a", "b", "c"] {
        assert_eq!(ann(client_id), UNAVAILABLE);
    }
    assert_eq!((condition(&broker), requests(&broker, "no_answer")), (Some(2), Some(3)));
    // From now on it is asked once in a second; this one need not be among them.
    wait_until("a login that is not asked about", || {
        assert_eq!(ann("d"), UNAVAILABLE);
        metric(&broker, "tacho_login_backend_skipped_total").is_some_and(|count| count > 0)
    });
    // What it said before still counts.
    assert_eq!(ann("before"), SUCCESS);
    let service = StubService::answering(TcpListener::bind(address).unwrap(), by_name);
    wait_until("a login", || ann("e") == SUCCESS);
    assert_eq!((ann("a"), condition(&broker)), (SUCCESS, Some(0)));
    assert!(service.requests().len() >= 2);
}

#[test]
fn connections_that_have_ended_are_noticed() {
    let service = backend(by_name);
    let broker = asking(&service, "connections_max = 1\nretries_max = 0");
    let one = |user: &str| answer(&broker, &login("c", V5, user, user));
    assert_eq!((one("a"), one("b")), (SUCCESS, SUCCESS));
    assert_eq!(service.connections(), 1);
    service.close_connections();
    // Without a repetition: it is not used at all.
    wait_until("a new connection", || {
        let name = format!("u{}", service.requests().len());
        one(&name) == SUCCESS && service.connections() == 2
    });
}

#[test]
fn the_password_file_is_asked_before_the_backend_or_after_it() {
    let service =
        backend(|request| match String::from_utf8_lossy(&request.body).contains("ghost") {
            true => says(r#"{"result":"ignore"}"#),
            false => by_name(request),
        });
    let files = Files::new(&[("ann", "word"), ("ghost", "word")], None);
    let address = service.address();
    let broker = |keys: &str| {
        let section = section(address, keys);
        TestBroker::configured(&format!("shards = 2\n{}{section}", files.section()))
    };
    let last = broker("");
    let one =
        |broker: &TestBroker, user: &str, word: &str| answer(broker, &login("c", V5, user, word));
    assert_eq!((one(&last, "ann", "word"), one(&last, "ann", "ann")), (SUCCESS, WRONG));
    assert!(service.requests().is_empty(), "the file decides about its users");
    assert_eq!((one(&last, "bob", "bob"), one(&last, "bob", "x")), (SUCCESS, WRONG));
    let first = broker("order = 'first'");
    assert_eq!((one(&first, "ann", "word"), one(&first, "ann", "ann")), (WRONG, SUCCESS));
    // The file is for those that it does not know.
    assert_eq!((one(&first, "ghost", "word"), one(&first, "ghost", "x")), (SUCCESS, WRONG));
    service.stop();
    assert_eq!(one(&first, "new", "new"), UNAVAILABLE);
    assert_eq!(one(&last, "ann", "word"), SUCCESS);
    let lenient = broker("order = 'first'\non_unavailable = 'ignore'\nretries_max = 0");
    assert_eq!((one(&lenient, "ann", "word"), one(&lenient, "bob", "bob")), (SUCCESS, WRONG));
}

#[test]
fn logins_beyond_the_queue_are_refused() {
    let service = backend(|_| StubReply::Silence);
    let keys = "connections_max = 1\nwaiting_max = 1\ntimeout_ms = 60_000";
    let section = section(service.address(), keys);
    let broker =
        TestBroker::with_metrics(&format!("shards = 1\n{section}[limits]\nconnect_timeout_s = 60"));
    let mut held = Vec::new();
    let mut hold = |broker: &TestBroker, client_id: &str| {
        let mut client = broker.client(V5);
        client.send(&Packet::Connect(login(client_id, V5, "ann", client_id)));
        held.push(client);
    };
    hold(&broker, "a");
    wait_until("a request", || service.requests().len() == 1);
    hold(&broker, "b");
    wait_until("one that waits", || metric(&broker, "tacho_login_backend_waiting") == Some(1));
    let busy = answer(&broker, &login("c", V5, "ann", "c"));
    assert_eq!(busy, ReasonCode::SERVER_BUSY);
    assert_eq!(broker.counter("refused_logins_busy_total"), 1);
    // Shards go on meanwhile.
    assert_eq!(answer(&broker, &connect("d", V5)), ReasonCode::NOT_AUTHORIZED);
}

#[test]
fn the_backend_is_asked_by_tls_with_a_certificate_and_trusted_by_a_ca() {
    let files = Files::new(&[], None);
    let ca = Authority::new(&files.path(""), "ca");
    let (identity, own) = (ca.issue("server", &["localhost"]), ca.issue_to("broker", 7));
    let service = backend(by_name);
    let tls = server(&identity, ClientCertificates::Required(ca.ca.clone()));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let behind = service.address();
    std::thread::spawn(move || {
        for wire in listener.incoming().flatten() {
            let plain = TcpStream::connect(behind).unwrap();
            tunnel(Box::new(tls.filter().unwrap()), plain, wire);
        }
    });
    let broker = |keys: &str| {
        TestBroker::configured(&format!(
            "shards = 1\n[access.http]\nurl = 'https://localhost:{port}/login'\nretries_max = 0\n\
             {keys}\n[access.http.fields]\nuser = '%u'\npassword = '%P'\n"
        ))
    };
    let trusting = format!("ca_file = {:?}\n", ca.ca);
    let with_own = format!("{trusting}cert_file = {:?}\nkey_file = {:?}\n", own.cert, own.key);
    let ann = login("c", V5, "ann", "ann");
    let known = broker(&with_own);
    assert_eq!(answer(&known, &ann), SUCCESS);
    assert_eq!(answer(&known, &login("c", V5, "ann", "x")), WRONG);
    for wrong in ["", &trusting] {
        assert_eq!(answer(&broker(wrong), &ann), UNAVAILABLE, "{wrong}");
    }
    assert_eq!(service.requests().len(), 2);
}

#[test]
fn names_in_certificates_are_sent_and_may_be_needed_beside_the_login() {
    let service = backend(by_name);
    let section = section(service.address(), "");
    let more = format!("{section}name = '%n'\nsubject = '%s'\n");
    let listener = "certificate_user = 'cn'\ncertificate_password = true\n";
    let secured = Secured::start(Files::new(&[], None), listener, &more);
    let pump = secured.ca.issue_to("pump", 1);
    let v5 = |user| login("c", V5, user, user);
    assert_eq!(secured.answer(Some(&pump), &v5("pump")), SUCCESS);
    let sent = String::from_utf8(service.requests()[0].body.clone()).unwrap();
    assert!(sent.contains(r#""name":"pump""#) && sent.contains(r#""subject":"CN=pump"#), "{sent}");
    // Logged in as another user.
    assert_eq!(secured.answer(Some(&pump), &v5("other")), ReasonCode::NOT_AUTHORIZED);
    assert_eq!(secured.answer(None, &v5("pump")), ReasonCode::NOT_AUTHORIZED);
}

#[test]
fn what_a_backend_allows_holds_while_a_client_is_connected_and_for_its_session() {
    let service = backend(by_name);
    let broker = asking(&service, "remember_allowed_s = 0");
    let lasting = |user| {
        let properties = ConnectProperties { session_expiry_s: Some(60), ..Default::default() };
        Connect { clean_start: false, properties, ..login("c", V5, user, user) }
    };
    let mut ann = broker.client(V5);
    assert_eq!(ann.connect(&lasting("ann")), (false, SUCCESS));
    // The session is that user's.
    assert_eq!(answer(&broker, &lasting("bob")), ReasonCode::NOT_AUTHORIZED);
    service.stop();
    ann.ping();
    assert_eq!(answer(&broker, &login("d", V5, "ann", "ann")), UNAVAILABLE);
    ann.ping();
}
