//! The independent programs that the tests talk to.
//!
//! Debian's mosquitto, its command line clients, collectd, Prometheus, Java, rpm and Chromium come
//! from the system's packages; paho-mqtt, matplotlib, a validator of OpenAPI, mqtt.js,
//! playwright-core, Grafana's types, JMeter, HdrHistogram, InfluxDB, nats-server and
//! OpenTelemetry's collector are installed into `peers` in the target folder, never into the
//! system.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::shell;

/// Pinned, so that a test that fails tomorrow fails because of us.
const PYPI_PACKAGES: [&str; 3] =
    ["paho-mqtt==2.1.0", "matplotlib==3.9.4", "openapi-spec-validator==0.9.0"];
/// mqtt.js, what drives Debian's Chromium, and the types of Grafana's dashboards with a compiler.
const NPM_PACKAGES: [&str; 4] =
    ["mqtt@5.16.0", "playwright-core@1.57.0", "@grafana/schema@13.2.3", "typescript@5.9.3"];

/// The last InfluxDB 1 that needs Go alone; pinned, with its modules, in `xtask/peers/influxdb`.
const INFLUXDB: &str = "1.8.3";

/// OpenTelemetry's collector, with one receiver and one exporter; its modules are pinned in
/// `xtask/peers/otelcol`.
const OTELCOL: &str = "0.165.0";

/// NATS, the bus of agents; pinned, with its modules, in `xtask/peers/nats-server`.
const NATS_SERVER: &str = "2.15.2";

/// A broker to measure beside others.
#[cfg(target_os = "linux")]
const RUMQTTD: &str = "rumqttd@0.20.0";

const DEBIAN_PROGRAMS: [(&str, &str); 13] = [
    ("mosquitto", "mosquitto"),
    ("mosquitto_pub", "mosquitto-clients"),
    ("mosquitto_sub", "mosquitto-clients"),
    ("collectd", "collectd-core"),
    ("prometheus-node-exporter", "prometheus-node-exporter"),
    ("prometheus", "prometheus"),
    ("promtool", "prometheus"),
    ("chromium", "chromium"),
    ("curl", "curl"),
    ("java", "default-jre-headless"),
    ("mvn", "maven"),
    ("systemd-analyze", "systemd"),
    ("rpmbuild", "rpm"),
];

/// Where the clients from PyPI and npm are installed.
pub(crate) fn dir() -> PathBuf {
    shell::target_dir().join("peers")
}

/// True where a missing peer is a failure and not a skipped test.
pub(crate) fn required() -> bool {
    env::var("TACHO_REQUIRE_PEERS").is_ok_and(|value| value == "1")
}

/// Installs what is missing; fails after having tried all of them.
pub(crate) fn install() -> Result<()> {
    let mut missing = Vec::new();
    for (name, result) in [
        ("Debian's programs", debian as fn() -> _),
        ("paho-mqtt, matplotlib and openapi-spec-validator (PyPI)", from_pypi),
        ("mqtt, playwright-core and @grafana/schema (npm)", from_npm),
        ("InfluxDB", influxdb),
        ("OpenTelemetry's collector", otelcol),
        ("nats-server", nats_server),
        ("JMeter and HdrHistogram (Maven)", from_maven),
    ]
    .map(|(name, install)| (name, patiently(name, install)))
    {
        match result {
            Ok(()) => eprintln!("{name}: present"),
            Err(error) => {
                eprintln!("{name}: missing: {error:#}");
                missing.push(name);
            }
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    bail!("missing peers: {} (tests that need them are skipped by name)", missing.join(", "))
}

/// Installing needs the network, which fails now and then: an automatic run tries three times.
fn patiently(name: &str, install: fn() -> Result<()>) -> Result<()> {
    for pause_s in [5, 20] {
        match install() {
            Err(error) if shell::in_ci() => {
                eprintln!("{name}: {error:#}; trying again in {pause_s} s");
                thread::sleep(Duration::from_secs(pause_s));
            }
            result => return result,
        }
    }
    install()
}

fn debian() -> Result<()> {
    let absent = || DEBIAN_PROGRAMS.iter().filter(|(program, _)| shell::find(program).is_none());
    if absent().next().is_none() {
        return Ok(());
    }
    if shell::in_ci() && is_root() && shell::find("apt-get").is_some() {
        let mut packages: Vec<&str> = absent().map(|(_, package)| *package).collect();
        packages.dedup();
        apt_install(&packages)?;
    }
    match absent().next() {
        None => Ok(()),
        Some((program, package)) => {
            bail!("no `{program}` on this machine: apt-get install {package}")
        }
    }
}

fn from_pypi() -> Result<()> {
    let wanted = PYPI_PACKAGES.join("\n");
    let venv = dir().join("venv");
    let python = venv.join("bin").join("python");
    let stamp = venv.join(".installed");
    if fs::read_to_string(&stamp).is_ok_and(|text| text == wanted) && python.is_file() {
        return Ok(());
    }
    fs::create_dir_all(dir()).context("cannot create the folder for peers")?;
    let venv_command = || {
        let mut command = shell::command("python3");
        command.args(["-m", "venv", "--clear"]).arg(&venv);
        command
    };
    if let Err(error) = shell::run(&mut venv_command()) {
        // Debian splits the venv module from the interpreter.
        if !(shell::in_ci() && is_root() && shell::find("apt-get").is_some()) {
            return Err(error);
        }
        apt_install(&["python3", "python3-venv"])?;
        shell::run(&mut venv_command())?;
    }
    let mut pip = shell::command(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    shell::run(pip.args(PYPI_PACKAGES))?;
    fs::write(&stamp, wanted).context("cannot record the installed programs")
}

fn from_npm() -> Result<()> {
    let modules = dir().join("node_modules");
    let has = |wanted: &str| {
        let (name, version) = wanted.rsplit_once('@').unwrap_or((wanted, ""));
        fs::read_to_string(modules.join(name).join("package.json"))
            .is_ok_and(|text| text.contains(&format!("\"version\": \"{version}\"")))
    };
    if NPM_PACKAGES.iter().all(|wanted| has(wanted)) {
        return Ok(());
    }
    fs::create_dir_all(dir()).context("cannot create the folder for peers")?;
    let package = dir().join("package.json");
    if !package.exists() {
        fs::write(&package, "{\"private\": true}\n").context("cannot write package.json")?;
    }
    // All at once: npm removes what an earlier call has installed and no file names.
    let mut npm = shell::command("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--no-save", "--loglevel=error"]);
    shell::run(npm.args(NPM_PACKAGES).current_dir(dir()))
}

/// InfluxDB 1.8, built where Go is installed; Debian's 1.6, which knows less, where it is not.
fn influxdb() -> Result<()> {
    let program = dir().join("bin").join("influxd");
    let installed = shell::output(shell::command(&program).arg("version"));
    if installed.is_ok_and(|text| text.contains(INFLUXDB)) {
        return Ok(());
    }
    let version = format!("-ldflags=-X main.version={INFLUXDB}");
    let package = "github.com/influxdata/influxdb/cmd/influxd";
    match go_build("influxdb", (package, &[&version]), &program) {
        Err(error) if shell::find("influxd").is_some() => {
            eprintln!("{error:#}; the system's is taken");
            Ok(())
        }
        Err(error) if shell::in_ci() && is_root() && shell::find("apt-get").is_some() => {
            eprintln!("{error:#}; Debian's is taken");
            apt_install(&["influxdb"])
        }
        result => result,
    }
}

/// The collector, built where Go is installed: that takes a minute or two, once.
fn otelcol() -> Result<()> {
    let program = dir().join("bin").join("otelcol");
    let installed = shell::output(shell::command(&program).arg("--version"));
    if installed.is_ok_and(|text| text.contains(OTELCOL)) {
        return Ok(());
    }
    let flags = format!("-ldflags=-s -w -X main.version={OTELCOL}");
    go_build("otelcol", (".", &[&flags]), &program)
}

/// nats-server, built where Go is installed, else the system's; one with JetStream is old enough.
fn nats_server() -> Result<()> {
    let program = dir().join("bin").join("nats-server");
    let installed = shell::output(shell::command(&program).arg("--version"));
    if installed.is_ok_and(|text| text.contains(NATS_SERVER)) {
        return Ok(());
    }
    let package = "github.com/nats-io/nats-server/v2";
    match go_build("nats-server", (package, &["-ldflags=-s -w"]), &program) {
        Err(error) if shell::find("nats-server").is_some() => {
            eprintln!("{error:#}; the system's is taken");
            Ok(())
        }
        Err(error) if shell::in_ci() && is_root() && shell::find("apt-get").is_some() => {
            eprintln!("{error:#}; Debian's is taken");
            apt_install(&["nats-server"])
        }
        result => result,
    }
}

/// JMeter, without a distribution: its libraries and settings as Maven Central has them.
fn from_maven() -> Result<()> {
    let home = dir().join("jmeter");
    let pom = shell::root().join("xtask/peers/jmeter/pom.xml");
    let wanted = fs::read_to_string(&pom).context("cannot read what to install")?;
    let stamp = home.join(".installed");
    if fs::read_to_string(&stamp).is_ok_and(|text| text == wanted) {
        return Ok(());
    }
    if home.exists() {
        fs::remove_dir_all(&home).context("cannot remove what an earlier list installed")?;
    }
    fs::create_dir_all(&home).context("cannot create the folder for peers")?;
    let mut mvn = shell::command("mvn");
    mvn.args(["--batch-mode", "--quiet", "generate-resources", "--file"]).arg(&pom);
    shell::run(mvn.arg(format!("-Dpeers={}", home.display())))?;
    fs::write(&stamp, wanted).context("cannot record the installed programs")
}

/// The broker made of mochi-mqtt, built where Go is installed.
#[cfg(target_os = "linux")]
pub(crate) fn mochi() -> Result<PathBuf> {
    let program = dir().join("mochi");
    go_build("mochi", (".", &[]), &program)?;
    Ok(program)
}

/// Builds a package of the Go module `xtask/peers/NAME`, with further arguments.
fn go_build(name: &str, (package, more): (&str, &[&str]), program: &Path) -> Result<()> {
    let go = shell::find("go");
    let go = go.with_context(|| format!("no `go` on this machine to build {name} with"))?;
    let folder = program.parent().context("a program has a folder")?;
    fs::create_dir_all(folder).context("cannot create the folder for peers")?;
    let mut build = shell::command(go);
    build.current_dir(shell::root().join("xtask/peers").join(name));
    build.args(["build", "-buildvcs=false"]).args(more).arg("-o").arg(program).arg(package);
    shell::run(&mut build)
}

/// rumqttd, installed from the registry of crates: that takes minutes, once.
#[cfg(target_os = "linux")]
pub(crate) fn rumqttd() -> Result<PathBuf> {
    let program = dir().join("bin").join("rumqttd");
    let version = RUMQTTD.rsplit_once('@').map_or("", |(_, version)| version);
    let installed = shell::output(shell::command(&program).arg("--version"));
    if installed.is_ok_and(|text| text.trim().ends_with(version)) {
        return Ok(program);
    }
    // Not `--locked`: its lock file has a release of `metrics` that newer compilers refuse.
    shell::run(shell::cargo().args(["install", RUMQTTD, "--root"]).arg(dir()))?;
    Ok(program)
}

fn apt_install(packages: &[&str]) -> Result<()> {
    shell::run(shell::command("apt-get").args(["update", "-q"]))?;
    let mut apt = shell::command("apt-get");
    apt.env("DEBIAN_FRONTEND", "noninteractive");
    apt.args(["install", "-q", "-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=120"]);
    shell::run(apt.args(packages))
}

fn is_root() -> bool {
    shell::output(shell::command("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}
