//! `cargo xtask dist`: the packages of a development build, used as their users would, in
//! directories that stand for a system.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

use tempfile::TempDir;

const TOOLS: [&str; 9] =
    ["objcopy", "objdump", "dpkg", "dpkg-deb", "tar", "gzip", "rpmbuild", "rpm", "python3"];

fn has_tools() -> bool {
    let missing = TOOLS.iter().find(|tool| {
        let output = Command::new(tool).arg("--version").output();
        !output.is_ok_and(|output| output.status.success())
    });
    if let Some(tool) = missing {
        assert!(std::env::var_os("TACHO_REQUIRE_PEERS").is_none(), "no {tool} on this machine");
        println!("ignored: no {tool} on this machine");
    }
    missing.is_none()
}

/// The program of a development build.
fn tacho() -> PathBuf {
    let xtask = Path::new(env!("CARGO_BIN_EXE_xtask"));
    let program = xtask.with_file_name("tacho");
    if !program.is_file() {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--package", "tacho"]);
        assert!(cargo.status().expect("cargo runs").success());
    }
    program
}

/// The packages, made once for the tests that look at them.
fn made() -> &'static TempDir {
    static MADE: LazyLock<TempDir> = LazyLock::new(|| {
        let out = TempDir::new().expect("a folder");
        let made = dist(out.path());
        assert!(made.status.success(), "{made:?}");
        out
    });
    &MADE
}

fn dist(out: &Path) -> Output {
    let mut xtask = Command::new(env!("CARGO_BIN_EXE_xtask"));
    xtask.arg("dist").arg("--tacho").arg(tacho()).arg("--out").arg(out);
    xtask.env("SOURCE_DATE_EPOCH", "1700000000").output().expect("runs")
}

fn files(folder: &Path, end: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    let mut found: Vec<_> = entries.map(|entry| entry.path()).collect();
    found.retain(|path| path.to_string_lossy().ends_with(end));
    found
}

/// A directory with a package database of its own.
struct System(TempDir);

impl System {
    fn new() -> Self {
        let root = TempDir::new().expect("a folder");
        for folder in ["info", "updates", "triggers"] {
            fs::create_dir_all(root.path().join("var/lib/dpkg").join(folder)).expect("makes");
        }
        fs::write(root.path().join("var/lib/dpkg/status"), "").expect("writes");
        Self(root)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn dpkg(&self, arguments: &[&str]) {
        let mut dpkg = Command::new("dpkg");
        dpkg.arg(format!("--root={}", self.0.path().display()));
        dpkg.args(["--force-not-root", "--force-depends", "--force-script-chrootless"]);
        let output = dpkg.args(arguments).output().expect("runs");
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    }
}

#[test]
fn a_package_is_installed_upgraded_removed_and_purged() {
    if !has_tools() {
        return;
    }
    let deb = files(made().path(), ".deb").pop().expect("a package");
    let deb = deb.to_str().expect("a plain name");
    let size = Command::new("dpkg-deb").args(["--field", deb, "Installed-Size"]).output();
    let size = String::from_utf8(size.expect("runs").stdout).expect("is text");
    // The program alone has some MiB.
    assert!(size.trim().parse::<u64>().is_ok_and(|kib| kib > 1_024), "{size}");
    let system = System::new();
    system.dpkg(&["--install", deb]);
    let program = system.path("usr/bin/tacho");
    let version = Command::new(&program).arg("--version").output().expect("runs");
    assert!(String::from_utf8_lossy(&version.stdout).starts_with("tacho "));
    for name in [
        "lib/systemd/system/tacho.service",
        "usr/share/man/man1/tacho.1.gz",
        "usr/share/man/man1/tacho-run.1.gz",
        "usr/share/bash-completion/completions/tacho",
        "usr/share/doc/tacho/copyright",
    ] {
        assert!(system.path(name).is_file(), "{name}");
    }
    let config = system.path("etc/tacho/broker.toml");
    let mut check = Command::new(&program);
    let check = check.args(["broker", "--check-config", "--config"]).arg(&config).output();
    let check = check.expect("runs");
    assert!(check.status.success(), "{check:?}");
    // What an administrator has changed stays.
    fs::write(&config, "listen = [\"127.0.0.1:1884\"]\n").expect("writes");
    system.dpkg(&["--force-confold", "--install", deb]);
    assert!(fs::read_to_string(&config).expect("is there").contains("1884"));
    fs::create_dir_all(system.path("var/lib/tacho")).expect("makes");
    system.dpkg(&["--remove", "tacho"]);
    assert!(!program.exists() && config.exists() && system.path("var/lib/tacho").exists());
    system.dpkg(&["--purge", "tacho"]);
    assert!(!config.exists() && !system.path("var/lib/tacho").exists());
}

/// The same bytes from the same program and commit, and sums that fit.
#[test]
fn packages_are_reproducible() {
    if !has_tools() {
        return;
    }
    let (one, two) = (made(), TempDir::new().expect("a folder"));
    assert!(dist(two.path()).status.success());
    let sums = |out: &TempDir| fs::read_to_string(out.path().join("SHA256SUMS")).expect("sums");
    assert_eq!(sums(one), sums(&two));
    assert_eq!(sums(one).lines().count(), 7);
    let mut check = Command::new("sha256sum");
    let check = check.args(["--check", "SHA256SUMS"]).current_dir(one.path()).output();
    assert!(check.expect("runs").status.success());
    let archive = files(one.path(), ".tar.gz").pop().expect("an archive");
    let list = Command::new("tar").arg("-tf").arg(&archive).output().expect("runs");
    let list = String::from_utf8_lossy(&list.stdout).into_owned();
    assert!(list.lines().any(|name| name.ends_with("-linux-gnu/usr/bin/tacho")), "{list}");
}

/// What a program says that must succeed.
fn said(command: &mut Command) -> String {
    let output = command.output().expect("starts");
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn an_rpm_has_what_the_families_of_fedora_expect() {
    if !has_tools() {
        return;
    }
    let rpm = files(made().path(), ".rpm").pop().expect("a package");
    let list = said(Command::new("rpm").args(["-qp", "--queryformat"]).arg(
        "[%{FILENAMES} %{FILEUSERNAME}:%{FILEGROUPNAME} %{FILEMODES:perms} %{FILEFLAGS:fflags}\n]",
    ).arg(&rpm));
    for line in [
        "/usr/bin/tacho root:root -rwxr-xr-x ",
        "/etc/tacho/broker.toml root:tacho -rw-r----- cn",
        "/usr/lib/systemd/system/tacho.service root:root -rw-r--r-- ",
        "/usr/share/man/man1/tacho-run.1.gz root:root -rw-r--r-- d",
        "/usr/share/zsh/site-functions/_tacho root:root -rw-r--r-- ",
    ] {
        assert!(list.lines().any(|found| found == line), "{line}: {list}");
    }
    let root = TempDir::new().expect("a folder");
    let (database, at) = (root.path().join("db"), root.path().join("system"));
    fs::create_dir_all(&at).expect("makes");
    let rpm_in = |arguments: &[&str], last: &Path| {
        let mut rpm = Command::new("rpm");
        rpm.arg("--dbpath").arg(&database).arg("--root").arg(&at);
        // Users and services are those of the system, which has none.
        said(rpm.args(["--nodeps", "--noscripts"]).args(arguments).arg(last));
    };
    if !is_root() {
        return;
    }
    rpm_in(&["--install"], &rpm);
    assert!(said(Command::new(at.join("usr/bin/tacho")).arg("--version")).starts_with("tacho "));
    rpm_in(&["--erase"], Path::new("tacho"));
    assert!(!at.join("usr/bin/tacho").exists());
}

/// pip installs it in an environment of its own, without the network.
#[test]
fn a_wheel_brings_the_program_into_an_environment() {
    if !has_tools() {
        return;
    }
    let wheel = files(made().path(), ".whl").pop().expect("a wheel");
    let folder = TempDir::new().expect("a folder");
    let environment = folder.path().join("venv");
    said(Command::new("python3").args(["-m", "venv"]).arg(&environment));
    let mut pip = Command::new(environment.join("bin/pip"));
    pip.args(["install", "--no-index", "--disable-pip-version-check"]);
    said(pip.arg(&wheel));
    let version = said(Command::new(environment.join("bin/tacho")).arg("--version"));
    assert!(version.starts_with("tacho "), "{version}");
    let about = said(Command::new(environment.join("bin/pip")).args(["show", "tacho"]));
    assert!(about.contains(&format!("Version: {}", env!("CARGO_PKG_VERSION"))), "{about}");
    // The sums in its list of files fit: pip does not look at them.
    let check = "import sys, zipfile, csv, io, hashlib, base64\n\
        z = zipfile.ZipFile(sys.argv[1])\n\
        record = [n for n in z.namelist() if n.endswith('/RECORD')][0]\n\
        rows = list(csv.reader(io.StringIO(z.read(record).decode())))\n\
        assert sorted(r[0] for r in rows) == sorted(z.namelist()), rows\n\
        for name, sum, size in rows[:-1]:\n\
        \x20   digest = hashlib.sha256(z.read(name)).digest()\n\
        \x20   digest = base64.urlsafe_b64encode(digest).rstrip(b'=').decode()\n\
        \x20   assert sum == 'sha256=' + digest and int(size) == len(z.read(name)), name\n\
        print('fits')";
    assert_eq!(said(Command::new("python3").args(["-c", check]).arg(&wheel)), "fits\n");
}

fn is_root() -> bool {
    said(Command::new("id").arg("-u")).trim() == "0"
}

fn json(path: &Path) -> serde_json::Value {
    serde_json::from_slice(&fs::read(path).expect("is there")).expect("is JSON")
}

/// Where an image has the file that is described so.
fn blob(layout: &Path, described: &serde_json::Value) -> PathBuf {
    let digest = described["digest"].as_str().expect("a digest");
    let path = layout.join("blobs").join(digest.replace(':', "/"));
    let bytes = fs::metadata(&path).expect("is there").len();
    assert_eq!(described["size"].as_u64(), Some(bytes), "{digest}");
    let sum = said(Command::new("sha256sum").arg(&path));
    assert!(sum.starts_with(&digest["sha256:".len()..]), "{digest}");
    path
}

/// Unpacked as a container's engine does it, and started without privileges and with a network of
/// its own; the probe of its health check finds the broker.
#[test]
fn an_image_runs_the_broker_as_a_user_without_privileges() {
    if !has_tools() {
        return;
    }
    let archive = files(made().path(), ".oci.tar").pop().expect("an image");
    let folder = TempDir::new().expect("a folder");
    let (layout, root) = (folder.path().join("layout"), folder.path().join("root"));
    for path in [&layout, &root] {
        fs::create_dir(path).expect("makes");
    }
    said(Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(&layout));
    let index = json(&layout.join("index.json"));
    let manifest = json(&blob(&layout, &index["manifests"][0]));
    let image = json(&blob(&layout, &manifest["config"]));
    assert_eq!(image["config"]["User"], "65532:65532");
    let layers = manifest["layers"].as_array().expect("layers");
    for (layer, plain) in layers.iter().zip(image["rootfs"]["diff_ids"].as_array().expect("ids")) {
        let path = blob(&layout, layer);
        let sum = said(Command::new("sh").args(["-c", "gzip -dc \"$0\" | sha256sum"]).arg(&path));
        assert_eq!(plain.as_str(), Some(&*format!("sha256:{}", &sum[..64])));
        said(Command::new("tar").arg("-xzpf").arg(&path).arg("-C").arg(&root));
    }
    let mut confined = Command::new("unshare");
    confined.args(["--net", "--pid", "--fork", "--setuid=65532"]);
    confined.args(["--setgid=65532", "--wd=/"]).arg(format!("--root={}", root.display()));
    let tried = Command::new("unshare").args(["--net", "--pid", "--fork", "true"]).status();
    if !is_root() || !tried.is_ok_and(|status| status.success()) {
        println!("ignored: this machine allows no namespaces");
        return;
    }
    let strings = |value: &serde_json::Value| -> Vec<String> {
        let all = value.as_array().expect("a list").iter();
        all.map(|one| one.as_str().expect("a string").to_owned()).collect()
    };
    confined.args(strings(&image["config"]["Entrypoint"]));
    // Whatever becomes of this test, the broker ends with it.
    confined.args(strings(&image["config"]["Cmd"])).args(["--shards", "1", "--end-with-stdin"]);
    let mut broker = confined.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    let log = BufReader::new(broker.stderr.take().expect("is piped")).lines();
    let mut lines = Vec::new();
    for line in log.map_while(Result::ok) {
        let ready = line.contains("listening on 0.0.0.0:1883");
        lines.push(line);
        if ready {
            break;
        }
    }
    let probe = strings(&image["config"]["Healthcheck"]["Test"]);
    let mut health = Command::new("unshare");
    health.args(["--setuid=65532", "--setgid=65532", "--wd=/"]);
    health.arg(format!("--root={}", root.display())).args(&probe[1..]);
    let health = health.output().expect("starts");
    drop(broker.stdin.take());
    assert!(broker.wait().expect("ends").success());
    assert!(health.status.success(), "{health:?}: {lines:?}");
    assert!(root.join("var/lib/tacho").read_dir().expect("is there").next().is_some());
}

#[test]
fn the_bill_of_materials_names_everything_in_the_program() {
    if !has_tools() {
        return;
    }
    let bill = json(&files(made().path(), ".cdx.json").pop().expect("a document"));
    assert_eq!((&bill["bomFormat"], &bill["specVersion"]), (&"CycloneDX".into(), &"1.6".into()));
    let components = bill["components"].as_array().expect("components");
    let licensed = |name: &str| {
        let found = components.iter().find(|component| component["name"] == name);
        found.and_then(|component| component["licenses"][0]["expression"].as_str())
    };
    assert!(licensed("rustls").is_some_and(|license| license.contains("Apache-2.0")));
    assert_eq!((licensed("preact"), licensed("tacho-broker")), (Some("MIT"), Some("Apache-2.0")));
    // What only tests and builds need is not in the program.
    assert_eq!((licensed("tempfile"), licensed("typescript")), (None, None));
    let known: BTreeSet<&str> = components
        .iter()
        .chain([&bill["metadata"]["component"]])
        .filter_map(|component| component["bom-ref"].as_str())
        .collect();
    assert_eq!(known.len(), components.len() + 1);
    for dependency in bill["dependencies"].as_array().expect("dependencies") {
        let needs = dependency["dependsOn"].as_array().expect("a list");
        for one in needs.iter().chain([&dependency["ref"]]) {
            assert!(known.contains(one.as_str().expect("a name")), "{one}");
        }
    }
}

#[test]
fn a_program_that_is_missing_is_named() {
    if !has_tools() {
        return;
    }
    let mut xtask = Command::new(env!("CARGO_BIN_EXE_xtask"));
    let output = xtask.args(["dist", "--tacho", "no-such-program"]).output().expect("runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("no-such-program"), "{said}");
}
