//! Completions and manual pages, as shells and `man` take them.

use std::fs;
use std::process::{Command, Output, Stdio};

const TACHO: &str = env!("CARGO_BIN_EXE_tacho");

fn tacho(arguments: &[&str]) -> Output {
    Command::new(TACHO).args(arguments).stdin(Stdio::null()).output().expect("runs")
}

fn text(output: &[u8]) -> String {
    String::from_utf8(output.to_vec()).expect("text")
}

/// bash itself completes: a command, and a flag of one.
#[test]
fn bash_completes_commands_and_flags() {
    for (typed, expected) in [("tacho scen", "scenario"), ("tacho broker --list", "--listen")] {
        let script = format!(
            "source <({TACHO} completions bash)\n\
             COMP_LINE='{typed}'; COMP_POINT=${{#COMP_LINE}}; COMP_WORDS=($COMP_LINE)\n\
             COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))\n\
             _tacho tacho \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"\n\
             printf '%s\\n' \"${{COMPREPLY[@]}}\"\n"
        );
        let output = Command::new("bash").args(["-c", &script]).output().expect("bash runs");
        let replies = text(&output.stdout);
        assert!(replies.lines().any(|reply| reply == expected), "{typed}: {output:?}");
    }
}

#[test]
fn every_shell_has_a_script_and_others_are_named() {
    for (shell, sign) in
        [("bash", "_tacho()"), ("zsh", "#compdef tacho"), ("fish", "complete -c tacho")]
    {
        let output = tacho(&["completions", shell]);
        let script = text(&output.stdout);
        assert!(output.status.success() && script.contains(sign), "{shell}: {script:.200}");
    }
    let output = tacho(&["completions", "csh"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("possible values"), "{output:?}");
}

#[test]
fn manual_pages_are_written_and_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("man1");
    let output = tacho(&["man", "--dir", &dir.to_string_lossy()]);
    assert!(output.status.success(), "{output:?}");
    for page in ["tacho.1", "tacho-run.1", "tacho-journal-check.1"] {
        let text = fs::read_to_string(dir.join(page)).expect(page);
        assert!(text.contains(".TH") && text.contains(".SH"), "{page}");
    }
    let hidden = fs::read_dir(&dir).expect("a folder").flatten();
    assert!(!hidden.into_iter().any(|file| file.file_name().to_string_lossy().contains("null")));
    let output = tacho(&["man", "journal", "check"]);
    let page = text(&output.stdout);
    assert!(output.status.success() && page.contains("journal check"), "{page:.300}");
    for (unknown, named) in [
        (&["man", "jurnal"][..], "has no command jurnal: it has run,"),
        (&["man", "null-broker"], "has no command null-broker"),
        (&["man", "run", "x"], "has no commands"),
    ] {
        let output = tacho(unknown);
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).contains(named), "{output:?}");
    }
    let file = folder.path().join("file");
    fs::write(&file, "").expect("writes");
    let output = tacho(&["man", "--dir", &file.to_string_lossy()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("cannot write to"), "{output:?}");
}
