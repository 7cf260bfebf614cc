//! What only NATS has: credentials, TLS, servers that are away.

use std::fs;
use std::time::Duration;

use libtest_mimic::Trial;
use tacho_bus::{Bus, BusError, Bytes, Credentials, Expected, LogLimits, NatsBus, NatsSettings};

use crate::server::NatsServer;
use crate::{Verdict, name, pattern, subject, until};

pub(crate) fn register(trials: &mut Vec<Trial>) {
    for (name, test) in [
        ("credentials_open_the_server_and_wrong_ones_do_not", credentials as fn() -> Verdict),
        ("a_server_with_tls_is_checked", tls),
        ("a_server_that_is_not_there_is_named", unreachable),
        ("without_jetstream_messages_pass_and_tables_are_refused", core_only),
        ("a_restarted_server_goes_on_with_what_it_had", restarted),
    ] {
        trials.push(Trial::test(format!("nats::{name}"), test));
    }
}

fn start(lines: &str, jetstream: bool) -> NatsServer {
    NatsServer::start(&NatsServer::find().expect("is there"), lines, jetstream)
}

fn credentials() -> Verdict {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("login");
    // The pair of the documentation of nkeys.
    let public = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4";
    let seed = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY";
    for (lines, right) in [
        (
            "authorization { user: joe, password: secret }".to_owned(),
            "user = 'joe'\npassword = 'secret'".to_owned(),
        ),
        ("authorization { token: secret }".to_owned(), "token = 'secret'".to_owned()),
        (format!("authorization {{ users: [ {{ nkey: {public} }} ] }}"), seed.to_owned()),
    ] {
        let server = start(&lines, false);
        let settings = NatsSettings::new(&server.address())?;
        let login = |text: &str| -> Result<NatsBus, BusError> {
            fs::write(&file, text).expect("written");
            let credentials = Credentials::read(&file)?;
            NatsBus::connect(&settings.clone().with_credentials(credentials))
        };
        login(&right)?;
        for wrong in ["user = 'joe'\npassword = 'guess'", "token = 'guess'"] {
            let error = login(wrong).map(|_| ()).expect_err("wrong credentials").to_string();
            assert!(error.contains("does not accept the credentials"), "{error}");
            assert!(!error.contains("guess"), "{error}");
        }
        assert!(NatsBus::connect(&settings).is_err(), "no credentials");
    }
    Ok(())
}

fn tls() -> Verdict {
    let folder = tempfile::tempdir()?;
    let own = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()])?;
    let (certificate, key) = (folder.path().join("server.pem"), folder.path().join("server.key"));
    fs::write(&certificate, own.cert.pem())?;
    fs::write(&key, own.signing_key.serialize_pem())?;
    let lines =
        format!("tls {{ cert_file: '{}', key_file: '{}' }}", certificate.display(), key.display());
    let server = start(&lines, false);
    let settings = NatsSettings::new(&format!("tls://127.0.0.1:{}", server.port()))?;
    assert!(NatsBus::connect(&settings).is_err(), "a certificate that no authority has signed");
    let bus = NatsBus::connect(&settings.with_ca(certificate))?;
    let messages = bus.subscribe(&pattern("tls", "x"), 10)?;
    bus.publish(&subject("tls", "x"), Bytes::new())?;
    assert!(messages.next(Duration::from_secs(10))?.is_some());
    Ok(())
}

fn unreachable() -> Verdict {
    let free = std::net::TcpListener::bind("127.0.0.1:0")?;
    let address = format!("nats://127.0.0.1:{}", free.local_addr()?.port());
    drop(free);
    let error = NatsBus::connect(&NatsSettings::new(&address)?).map(|_| ());
    let error = error.expect_err("nothing listens").to_string();
    assert!(error.contains(&format!("cannot reach the bus at {address}")), "{error}");
    Ok(())
}

fn core_only() -> Verdict {
    let server = start("", false);
    let bus = NatsBus::connect(&NatsSettings::new(&server.address())?)?;
    let messages = bus.subscribe(&pattern("core", "x"), 10)?;
    bus.publish(&subject("core", "x"), Bytes::new())?;
    assert!(messages.next(Duration::from_secs(10))?.is_some());
    let error = bus.table(&name("core"), None).map(|_| ()).expect_err("no JetStream");
    assert!(
        matches!(&error, BusError::Refused { why } if why.contains("start it with -js")),
        "{error:?}"
    );
    Ok(())
}

fn restarted() -> Verdict {
    let mut server = start("", true);
    let bus = NatsBus::connect(&NatsSettings::new(&server.address())?)?;
    let table = bus.table(&name("restarted"), None)?;
    let log = bus.log(&name("restarted"), LogLimits::of_bytes(1 << 20))?;
    let revision = table.put(&name("key"), Bytes::from_static(b"before"), Expected::Absent)?;
    log.append(Bytes::from_static(b"before"))?;
    let messages = bus.subscribe(&pattern("restarted", "x"), 1_000)?;
    server.restart(&NatsServer::find().expect("is there"));
    until("messages pass again", || {
        // The queue may be full until the client has connected again.
        let _ = bus.publish(&subject("restarted", "x"), Bytes::new());
        messages.next(Duration::from_millis(20)).expect("open").is_some()
    });
    table.put(&name("key"), Bytes::from_static(b"after"), Expected::Revision(revision))?;
    assert_eq!(log.append(Bytes::from_static(b"after"))?, 2);
    assert_eq!(log.read(1, 10)?.len(), 2);
    Ok(())
}
