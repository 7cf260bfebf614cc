//! Names and notes of runs: in the record, on the terminal, in the report and in the list.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

const SCENARIO: &str = "name = 'one'\n[phases]\nwarmup = '100ms'\nmeasure = '1s'\n\
    [groups.g]\nclients = 1\n[[groups.g.publish]]\ntopic = 't'\nrate = { per_client = 20 }\n\
    [[groups.g.subscribe]]\nfilter = 't'\n";

fn tacho(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
    command.args(arguments).stdin(Stdio::null()).output().expect("starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&read(path)).expect("is JSON")
}

/// Kills its process when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The list of `tacho serve`.
fn list(runs: &Path) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
    command.args(["serve", "--listen", "127.0.0.1:0", "--dir"]).arg(runs);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut serve = Running(command.spawn().expect("starts"));
    let mut lines = BufReader::new(serve.0.stderr.take().expect("is piped")).lines();
    let line = lines.find_map(|line| line.ok().filter(|line| line.contains("http://")));
    let line = line.expect("an address");
    let address = line.split("http://").nth(1).and_then(|rest| rest.split(['/', ' ']).next());
    let mut stream = TcpStream::connect(address.expect("an address")).expect("connects");
    let token = read(&runs.join(".console-token"));
    let request = format!(
        "GET /api/v1/runs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
         Connection: close\r\n\r\n",
        token.trim()
    );
    stream.write_all(request.as_bytes()).expect("sends");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("reads");
    text(&answer)
}

#[test]
fn a_run_a_ladder_and_a_comparison_keep_their_name_and_note() {
    let folder = tempfile::tempdir().expect("a folder");
    let scenario = folder.path().join("one.toml");
    fs::write(&scenario, SCENARIO).expect("writes");
    let scenario = scenario.to_str().expect("UTF-8");
    let runs = folder.path().join("runs");
    let at = |name: &str| runs.join(name).to_str().expect("UTF-8").to_owned();
    let (first, second, third) = (at("1"), at("2"), at("3"));
    let kinds: [&[&str]; 3] = [
        &["run", scenario, "--dir", &first, "--name", "Kernel 6.12", "--note", "C-states <off>"],
        &["run", scenario, "--dir", &second, "--note", "as before", "--lang", "zh"],
        &["compare", &first, &second, "--dir", &third, "--name", "Both kernels"],
    ];
    let said = kinds.map(|arguments| {
        let output = tacho(arguments);
        text(&output.stdout)
    });
    assert!(said[0].contains("\nname: Kernel 6.12\nnote: C-states <off>\n"), "{}", said[0]);
    assert!(said[1].contains("\nnote: as before\n") && !said[1].contains("\nname:"), "{}", said[1]);
    assert!(said[2].contains("\nname: Both kernels\n"), "{}", said[2]);
    let given = json(&runs.join("1/summary.json"))["given"].clone();
    assert_eq!(given, serde_json::json!({ "name": "Kernel 6.12", "note": "C-states <off>" }));
    assert_eq!(json(&runs.join("3/comparison.json"))["given"]["name"], "Both kernels");
    assert_eq!(json(&runs.join("3/summary.json"))["given"]["name"], "Both kernels");
    for (file, words) in [
        ("1/report.html", "<b>Note</b> C-states &lt;off&gt;"),
        ("1/summary.md", "Name: Kernel 6.12"),
        ("2/report.html", "<b>备注</b> as before"),
        ("3/report.html", "<b>Name</b> Both kernels"),
    ] {
        let page = read(&runs.join(file));
        assert!(page.contains(words), "no {words} in {file}");
    }
    let list = list(&runs);
    for words in ["Kernel 6.12", "C-states <off>", "as before", "Both kernels"] {
        assert!(list.contains(words), "no {words} in {list}");
    }
}

#[test]
fn a_campaign_is_named_as_a_whole_and_so_is_its_directory() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("one.toml"), format!("{SCENARIO}[vars]\nn = 1\n"))
        .expect("writes");
    let mut ladder = Command::new(env!("CARGO_BIN_EXE_tacho"));
    ladder.args(["ladder", "one.toml", "n=1", "--hold", "1s", "--name", "Before", "--note", "x y"]);
    let output = ladder.current_dir(folder.path()).stdin(Stdio::null()).output().expect("starts");
    assert!(
        text(&output.stdout).contains("\nname: Before\nnote: x y\n"),
        "{}",
        text(&output.stderr)
    );
    let mut runs = fs::read_dir(folder.path().join("runs")).expect("a folder");
    let run = runs.next().expect("a run").expect("is read").path();
    assert!(run.to_string_lossy().ends_with("-Before"), "{}", run.display());
    let record = json(&run.join("summary.json"));
    assert_eq!(record["given"]["note"], "x y");
    let step = run.join(record["steps"][0]["directory"].as_str().expect("a directory"));
    assert_eq!(json(&step.join("summary.json"))["given"], Value::Null);
}

#[test]
fn names_are_one_line() {
    for name in ["a\nb", " ", "\u{1b}[2J"] {
        let output = tacho(&["run", "symmetric", "--name", name]);
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).contains("one line of text"), "{}", text(&output.stderr));
    }
}
