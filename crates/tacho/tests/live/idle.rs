//! Pages while other connections take all places and read nothing.

use std::fs;
use std::io::Write as _;
use std::net::TcpStream;

use crate::Program;

/// Connections that send nothing, half a request, or never read a large answer.
fn idle_connections(program: &Program, large: &str) -> Vec<TcpStream> {
    let host = program.address;
    let half = format!("GET / HTTP/1.1\r\nHost: {host}\r\n");
    let token = program.access.as_ref().map(|token| format!("Authorization: Bearer {token}\r\n"));
    let token = token.unwrap_or_default();
    let unread = format!("GET {large} HTTP/1.1\r\nHost: {host}\r\n{token}\r\n");
    let texts = ["", &half, &unread];
    let connect = |at: usize| {
        let mut stream = program.connect();
        stream.write_all(texts[at % texts.len()].as_bytes()).expect("sends");
        stream
    };
    (0..200).map(connect).collect()
}

#[test]
fn the_stop_button_works_while_idle_connections_take_all_places() {
    let place = tempfile::tempdir().expect("temporary directory");
    let program = Program::run(&place.path().join("run"), &[]);
    let mut events = program.events();
    events.wait_for("second");
    let _idle = idle_connections(&program, "/uplot.js");
    let token = program.token();
    assert_eq!(program.status(&format!("POST /stop\nX-Tacho-Token: {token}")), 202);
    // The browser that watches has kept its place.
    assert_eq!(events.wait_for("end")["verdict"], "aborted");
    let (code, said) = program.end();
    assert_eq!(code, Some(105), "{said}");
}

#[test]
fn past_runs_are_served_beside_fifos_and_connections_that_do_not_read() {
    let place = tempfile::tempdir().expect("temporary directory");
    let runs = place.path();
    for name in ["odd", "large"] {
        fs::create_dir(runs.join(name)).expect("creates");
    }
    for name in ["report.html", "summary.json", "running.json"] {
        let path = runs.join("odd").join(name);
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        let fifo = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, path, fifo, mode, 0).expect("makes");
    }
    fs::write(runs.join("large/report.html"), vec![b' '; 64 << 20]).expect("writes");
    let program =
        Program::start(&["serve", "--dir", runs.to_str().expect("UTF-8"), "--listen", "0"]);
    let _idle = idle_connections(&program, "/runs/large/report.html");
    for _ in 0..8 {
        assert_eq!(program.status("GET /runs/odd/report.html"), 404);
    }
    let (_, run) = program.ask("GET /api/v1/runs/odd");
    assert!(run.contains("not a regular file"), "{run}");
    fs::write(runs.join("large/summary.json"), "{}").expect("writes");
    assert_eq!(program.status("GET /runs/large/summary.json"), 200);
}
