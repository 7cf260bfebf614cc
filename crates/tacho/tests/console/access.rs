//! Who is let in, and what is refused.

use std::fs;

use serde_json::json;

use crate::client::{Console, small};
use crate::folder;

const JSON: &str = "Content-Type: application/json";

#[test]
fn nothing_is_shown_or_changed_without_a_token() {
    let place = folder();
    fs::create_dir(place.path().join("20260101-a")).expect("creates");
    fs::write(place.path().join("20260101-a/summary.json"), "{\"verdict\": \"ok\"}")
        .expect("writes");
    let console = Console::start(place.path());
    let token = &console.token;
    for headers in
        ["", "Authorization: Bearer wrong", "Cookie: tacho_token=", "Authorization: Bearer"]
    {
        for path in ["/api/v1/runs", "/api/v1/openapi.json", "/api/v1/events", "/api/v1/nothing"] {
            let answer = console.raw(&format!("GET {path}"), headers, b"");
            assert_eq!(answer.status, 401, "{path} {headers}");
            assert!(answer.json()["error"]["message"].is_string(), "{}", answer.body);
        }
        for path in ["/", "/runs/20260101-a/summary.json", "/runs", "/?token=wrong", "/api/runs"] {
            let answer = console.raw(&format!("GET {path}"), headers, b"");
            assert_eq!(answer.status, 401, "{path} {headers}");
            assert!(!answer.body.contains("20260101"), "{}", answer.body);
        }
        let start = console.raw("POST /api/v1/runs", format!("{headers}\n{JSON}").trim(), b"{}");
        assert_eq!(start.status, 401, "{headers}");
    }
    let page = console.raw("GET /", "", b"");
    assert!(
        page.body.contains("tacho serve") && page.body.contains(".console-token"),
        "{}",
        page.body
    );
    assert!(!page.body.contains(token.as_str()));
    let link = console.raw(&format!("GET /?token={token}"), "", b"");
    assert_eq!(link.status, 303, "{}", link.head);
    let head = link.head.to_ascii_lowercase();
    assert!(
        head.contains("location: /\r\n") && head.contains("httponly; samesite=strict"),
        "{head}"
    );
    for path in ["/", "/api/v1/runs", "/runs/20260101-a/summary.json", "/api/v1/session"] {
        let answer =
            console.raw(&format!("GET {path}"), &format!("Cookie: x=y; tacho_token={token}"), b"");
        assert_eq!(answer.status, 200, "{path}");
        assert!(!answer.body.contains(token.as_str()), "{path} shows the token");
    }
}

#[test]
fn pages_of_others_are_refused_whatever_token_the_browser_has() {
    let place = folder();
    let console = Console::start(place.path());
    let cookie = format!("Cookie: tacho_token={}", console.token);
    let port = console.address.port();
    for headers in ["Host: evil.example", "Host: 192.0.2.1", "Origin: http://evil.example"] {
        let answer = console.raw("GET /api/v1/runs", &format!("{cookie}\n{headers}"), b"");
        assert_eq!(answer.status, 403, "{headers}");
    }
    for headers in [
        // Another program on this machine, whose pages get the same cookies.
        format!("{JSON}\nOrigin: http://127.0.0.1:{}", port.wrapping_add(1)),
        format!("{JSON}\nOrigin: null"),
        format!("{JSON}\nSec-Fetch-Site: same-site"),
        format!("{JSON}\nSec-Fetch-Site: cross-site\nSec-Fetch-Mode: navigate"),
    ] {
        for line in ["POST /api/v1/runs", "DELETE /api/v1/runs/x", "PATCH /api/v1/runs/x"] {
            let answer = console.raw(line, &format!("{cookie}\n{headers}"), b"{}");
            assert_eq!(answer.status, 403, "{line} {headers}");
        }
    }
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"] {
        let headers = format!("{cookie}\nContent-Type: {kind}");
        assert_eq!(console.raw("POST /api/v1/runs", &headers, b"{}").status, 400, "{kind}");
        assert_eq!(
            console.raw("POST /api/v1/uploads?name=a.csv", &headers, b"x").status,
            400,
            "{kind}"
        );
    }
    let own = format!("{cookie}\n{JSON}\nOrigin: http://{}", console.address);
    let preview = console.raw("POST /api/v1/preview", &own, small(1.0).to_string().as_bytes());
    assert_eq!(preview.status, 200, "{}", preview.body);
}

#[test]
fn viewers_look_and_operators_act() {
    let place = folder();
    let tokens = place.path().join("tokens");
    fs::write(&tokens, "viewer 0123456789abcdef\noperator fedcba9876543210\n").expect("writes");
    let runs = place.path().join("runs");
    fs::create_dir(&runs).expect("creates");
    let file = tokens.to_str().expect("UTF-8");
    let console = Console::start_with(&runs, &["--token-file", file], None);
    let ask = |line: &str, token: &str| {
        let headers = format!("Authorization: Bearer {token}\n{JSON}");
        console.raw(line, &headers, small(1.0).to_string().as_bytes())
    };
    let (viewer, operator) = ("0123456789abcdef", "fedcba9876543210");
    assert_eq!(ask("GET /api/v1/session", viewer).json()["role"], "viewer");
    assert_eq!(ask("GET /api/v1/session", operator).json()["role"], "operator");
    for line in [
        "POST /api/v1/runs",
        "POST /api/v1/preview",
        "POST /api/v1/runs/x/stop",
        "PATCH /api/v1/runs/x",
        "DELETE /api/v1/runs/x",
    ] {
        assert_eq!(ask(line, viewer).status, 403, "{line}");
    }
    assert_eq!(ask("POST /api/v1/preview", operator).status, 200);
    assert_eq!(ask("POST /api/v1/runs/x/stop", operator).status, 404);
    let other = folder();
    fs::write(&tokens, "viewer short\n").expect("writes");
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_tacho"))
        .args(["serve", "--listen", "0", "--token-file", file, "--dir"])
        .arg(other.path())
        .output()
        .expect("starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(104), "{said}");
    assert!(said.contains("line 1") && !said.contains("short"), "{said}");
}

#[test]
fn what_is_too_large_is_refused_and_ids_lead_nowhere_else() {
    let place = folder();
    let runs = place.path().join("runs");
    fs::create_dir_all(runs.join("20260101-a")).expect("creates");
    fs::create_dir_all(place.path().join("outside")).expect("creates");
    for file in ["outside/summary.json", "summary.json"] {
        fs::write(place.path().join(file), "{\"secret\": 1}").expect("writes");
    }
    std::os::unix::fs::symlink(place.path().join("outside"), runs.join("link")).expect("links");
    let console = Console::start(&runs);
    let mut large = small(1.0);
    large["note"] = json!("x".repeat(300 << 10));
    assert_eq!(console.post("/runs", &large).status, 413);
    assert_eq!(console.upload("a.csv", &vec![b'x'; (20 << 20) + 1]).status, 413);
    assert_eq!(console.upload("a.csv", &vec![b'x'; 3 << 20]).status, 201);
    for id in [
        "..",
        "%2e%2e",
        "%2e%2e%2foutside",
        "link",
        ".trash",
        "..%5coutside",
        "20260101-a%00",
        "nothing",
    ] {
        for path in [
            format!("/runs/{id}"),
            format!("/runs/{id}/files/summary.json"),
            format!("/runs/{id}/report.html"),
            format!("/runs/{id}/report.zh.html"),
            format!("/runs/{id}/events"),
        ] {
            let answer = console.get(&path);
            assert!((400..500).contains(&answer.status), "{path}: {}", answer.status);
            assert!(!answer.body.contains("secret"), "{path}");
        }
        for path in ["stop", "cancel", "repeat", "restore"] {
            let answer = console.post(&format!("/runs/{id}/{path}"), &json!({}));
            assert!((400..500).contains(&answer.status), "{path} {id}: {}", answer.status);
        }
        let answer = console.send("DELETE", &format!("/runs/{id}"), &json!({}));
        assert!((400..500).contains(&answer.status), "{id}: {}", answer.status);
    }
    for name in ["..%2f..%2fsummary.json", "%2fetc%2fpasswd", "../summary.json"] {
        let answer = console.get(&format!("/runs/20260101-a/files/{name}"));
        assert!((400..500).contains(&answer.status), "{name}: {}", answer.status);
    }
    assert!(place.path().join("outside/summary.json").is_file());
    assert!(runs.join("20260101-a").is_dir());
}
