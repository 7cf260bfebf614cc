use std::fs;

use super::*;
use crate::config::RawConfig;

const SECOND_NS: u64 = 1_000_000_000;

fn settings(tables: &str) -> HttpSettings {
    let text = format!(
        "[access.http]\nurl = 'http://127.0.0.1:1'\nreconnect_s = 60\n[access.http.fields]\n\
         user = '%u'\n[access.http.headers]\nx-broker = 'one'\n{tables}"
    );
    let raw: RawConfig = toml::from_str(&text).expect("valid");
    raw.resolve().expect("valid").access.http.all()[0].clone()
}

fn secret_of(link: &BackendLink) -> &str {
    let found = link.headers.iter().find(|(name, _)| *name == "authorization");
    found.expect("is there").1.to_str().expect("text")
}

#[test]
fn secrets_are_read_again_and_the_old_ones_stay_while_they_cannot_be_used() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("secret");
    fs::write(&path, "first\r\n").expect("writes");
    let header = format!(
        "[access.http.secret_headers]\nauthorization = {{ file = {path:?}, prefix = 'Bearer ' }}\n"
    );
    let agents = Agents::open(&settings(&header), 0).expect("valid");
    let first = agents.current(59 * SECOND_NS);
    assert_eq!(secret_of(&first), "Bearer first");
    assert_eq!(first.headers[0].1, "one");
    fs::write(&path, "second").expect("writes");
    assert!(Arc::ptr_eq(&first, &agents.current(59 * SECOND_NS)));
    let second = agents.current(60 * SECOND_NS);
    assert_eq!(secret_of(&second), "Bearer second");
    for wrong in ["", "\n", "a\nb", "a\u{7f}"] {
        fs::write(&path, wrong).expect("writes");
        let at = agents.lock().since_ns + 60 * SECOND_NS;
        let kept = agents.current(at);
        assert!(!Arc::ptr_eq(&second, &kept), "connections are new");
        assert_eq!(secret_of(&kept), "Bearer second");
        let refused = Agents::open(&settings(&header), 0).err().expect("unusable");
        assert!(refused.contains("`authorization`") && refused.contains("secret"), "{refused}");
    }
}

#[test]
fn a_failure_renews_connections_once() {
    let agents = Agents::open(&settings(""), 0).expect("valid");
    let failed = agents.current(1);
    agents.renew(&failed);
    let renewed = agents.current(2);
    assert!(!Arc::ptr_eq(&failed, &renewed));
    // Another thread has failed on the same connections.
    agents.renew(&failed);
    assert!(Arc::ptr_eq(&renewed, &agents.current(3)));
}

#[test]
fn secrets_that_are_missing_are_named_and_not_shown() {
    for (source, words) in [
        ("{ file = '/nowhere/secret' }", "/nowhere/secret: cannot read it"),
        ("{ env = 'TACHO_NO_SUCH_VARIABLE' }", "TACHO_NO_SUCH_VARIABLE of the environment"),
    ] {
        let header = format!("[access.http.secret_headers]\nauthorization = {source}\n");
        let refused = Agents::open(&settings(&header), 0).err().expect(words);
        assert!(refused.contains(words), "{refused}");
    }
}
