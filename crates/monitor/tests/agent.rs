//! Agents and their clients, over loopback sockets.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use tacho_monitor::{
    AgentError, AgentServer, HostRow, MonitorSpec, ProcRoot, ProcessSelector, Token, Watch,
    WatchedProcess, now_ns,
};
use tacho_testkit::{PATIENCE, wait_until};

const TOKEN: &str = "0123456789abcdef";

fn agent(address: &str, processes: Vec<WatchedProcess>) -> AgentServer {
    let token = Token::new(TOKEN).expect("a token");
    let address: SocketAddr = address.parse().expect("an address");
    AgentServer::start(address, token, true, ProcRoot::default(), processes).expect("listens")
}

fn spec(agent: &AgentServer, options: &str) -> MonitorSpec {
    let address = agent.address();
    let text = format!("node1=agent://{address}?token={TOKEN}&interval=100ms{options}");
    MonitorSpec::parse(&text).expect("a source")
}

fn rows(watch: &mut Watch, count: usize) -> Vec<HostRow> {
    let mut rows = Vec::new();
    wait_until("rows arrive", || {
        rows.extend(watch.rows());
        rows.len() >= count
    });
    rows
}

#[test]
#[cfg(target_os = "linux")]
fn remote_rows_are_mapped_to_the_local_clock() {
    let broker = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = broker.local_addr().expect("bound").port();
    let agent = agent("127.0.0.1:0", Vec::new());
    let began_ns = now_ns();
    let mut watch = Watch::start(&[spec(&agent, &format!("&port={port}"))])
        .expect("the agent accepts the client");
    let rows = rows(&mut watch, 3);
    let done_ns = now_ns();
    for row in &rows {
        let error_ns = row.clock_error_ns.expect("a bound");
        assert!(row.at_ns + error_ns >= began_ns && row.at_ns <= done_ns + error_ns, "{row:?}");
        assert_eq!(row.target.as_deref(), Some("node1"));
        assert_eq!(row.source, format!("agent://{}", agent.address()));
        assert!(row.cpu.is_some() && row.memory.is_some());
    }
    let process = rows.iter().find_map(|row| row.processes.first()).expect("the process");
    assert_eq!(process.pid, Some(std::process::id()));
    assert_eq!(process.target.as_deref(), Some("node1"));
    assert_eq!(agent.counts().admitted, 1);
    let reports = watch.stop();
    assert!(reports[0].rows >= 3 && reports[0].clock_error_ns_max > Some(0), "{reports:?}");
    assert_eq!((reports[0].errors, reports[0].dropped), (0, 0), "{reports:?}");
    wait_until("the client count drops", || agent.counts().clients == 0);
}

#[test]
fn a_wrong_token_is_refused() {
    let agent = agent("127.0.0.1:0", Vec::new());
    let text = format!("agent://{}?token=0123456789abcdeX", agent.address());
    let spec = MonitorSpec::parse(&text).expect("a source");
    let error = Watch::start(&[spec]).expect_err("refused").to_string();
    assert!(error.contains("the token does not match"), "{error}");
    assert!(!error.contains("abcdeX"), "{error}");
    assert_eq!((agent.counts().refused, agent.counts().admitted), (1, 0));
}

#[test]
fn an_agent_without_the_token_is_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    let fake = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        writeln!(stream, "{{\"tacho_monitor\":1,\"nonce\":\"00\"}}").expect("writes");
        let mut line = String::new();
        BufReader::new(stream.try_clone().expect("clones")).read_line(&mut line).expect("reads");
        writeln!(stream, "{{\"host\":\"h\",\"proof\":\"00\"}}").expect("writes");
        line
    });
    let text = format!("agent://{address}?token={TOKEN}");
    let spec = MonitorSpec::parse(&text).expect("a source");
    let error = Watch::start(&[spec]).expect_err("no agent").to_string();
    assert!(error.contains("does not know the token"), "{error}");
    let request = fake.join().expect("the fake agent ends");
    assert!(!request.contains(TOKEN), "the token must not cross the network: {request}");
}

#[test]
fn a_refused_connection_names_the_command_to_start() {
    let address = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound");
    let text = format!("agent://{address}?token={TOKEN}");
    let spec = MonitorSpec::parse(&text).expect("a source");
    let error = Watch::start(&[spec]).expect_err("refused").to_string();
    assert!(error.contains("tacho monitor --listen"), "{error}");
}

#[test]
fn non_loopback_addresses_require_a_user_token() {
    let token = || Token::new(TOKEN).expect("a token");
    let address: SocketAddr = "0.0.0.0:0".parse().expect("an address");
    let error = AgentServer::start(address, token(), false, ProcRoot::default(), Vec::new())
        .expect_err("needs a token");
    assert!(matches!(error, AgentError::NoToken(_)), "{error}");
    AgentServer::start(address, token(), true, ProcRoot::default(), Vec::new()).expect("listens");
    let loopback: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    AgentServer::start(loopback, token(), false, ProcRoot::default(), Vec::new()).expect("listens");
}

#[test]
fn clients_and_lines_are_bounded() {
    let agent = agent("127.0.0.1:0", Vec::new());
    let connect = || {
        let stream = TcpStream::connect(agent.address()).expect("connects");
        stream.set_read_timeout(Some(PATIENCE)).expect("timeout");
        let mut line = String::new();
        BufReader::new(&stream).read_line(&mut line).expect("a line");
        (stream, line)
    };
    let held: Vec<_> = (0..8).map(|_| connect()).collect();
    assert!(held.iter().all(|(_, line)| line.contains("tacho_monitor")));
    let (_, line) = connect();
    assert!(line.contains("limit of 8 clients"), "{line}");
    assert_eq!(agent.counts().too_many, 1);
    let (mut stream, _) = held.into_iter().next().expect("eight");
    // The agent may close the connection during the write.
    let _ = stream.write_all(&[b'x'; 10_000]);
    wait_until("a line without an end is accepted", || agent.counts().refused >= 1);
}

/// The line that admits a client, made with the public parts only: another client's proof.
#[test]
fn a_client_that_does_not_read_is_disconnected() {
    let agent = agent("127.0.0.1:0", Vec::new());
    // A relay between a true client and the agent, which stops reading from the agent once the
    // client is admitted, and asks for answers without end.
    let relay = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = relay.local_addr().expect("bound");
    let to_agent = agent.address();
    let thread = std::thread::spawn(move || {
        let (mut client, _) = relay.accept().expect("a client");
        let mut server = TcpStream::connect(to_agent).expect("connects");
        let forward = |from: &TcpStream, to: &mut TcpStream| {
            let mut line = Vec::new();
            // Bytes are read one by one, so that nothing behind the line is taken.
            let mut reader = BufReader::with_capacity(1, from);
            reader.read_until(b'\n', &mut line).expect("a line");
            to.write_all(&line).expect("writes");
        };
        forward(&server, &mut client);
        forward(&client, &mut server);
        forward(&server, &mut client);
        drop(client);
        server.set_write_timeout(Some(Duration::from_millis(200))).expect("timeout");
        (server, b"{\"ping\":1}\n".repeat(1000))
    });
    let text = format!("agent://{address}?token={TOKEN}");
    let spec = MonitorSpec::parse(&text).expect("a source");
    assert!(Watch::start(&[spec]).is_err(), "the relay gave up");
    let (mut server, pings) = thread.join().expect("the relay ends");
    wait_until("a client that does not read is disconnected", || {
        let _ = server.write(&pings);
        agent.counts().slow == 1
    });
}

#[test]
#[cfg(target_os = "linux")]
fn a_broken_stream_is_reopened() {
    let first = agent("127.0.0.1:0", Vec::new());
    let address = first.address().to_string();
    let name = "no-such-broker-process";
    let mut watch = Watch::start(&[spec(&first, &format!("&process={name}"))])
        .expect("the agent accepts the client");
    rows(&mut watch, 1);
    drop(first);
    wait_until("the broken connection is noticed", || watch.reports()[0].errors >= 2);
    watch.rows();
    let selector = ProcessSelector::Pid(std::process::id());
    let second = agent(&address, vec![WatchedProcess { selector, target: None, optional: false }]);
    let rows = rows(&mut watch, 3);
    assert!(rows.iter().any(|row| row.processes.len() == 1), "{rows:?}");
    assert_eq!(second.counts().admitted, 1);
    let last = watch.stop().remove(0).last_error.expect("an error");
    assert!(last.contains(name), "{last}");
}
