//! An image of a container, as an archive in the layout of the Open Container Initiative (image
//! format 1.1): `docker load`, `podman load` and registries' tools read it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::Source;
use super::archive::{Tar, gzip, set_modes, sha256};
use super::tree::Tree;
use crate::shell;

/// Number of the user and group of the broker.
const USER: u32 = 65_532;
const PASSWD: &str = "root:x:0:0:root:/:/sbin/nologin\ntacho:x:65532:65532:tacho:/:/sbin/nologin\n";
const GROUP: &str = "root:x:0:\ntacho:x:65532:\n";
/// Debian's and its relatives', and Fedora's and its relatives'.
const AUTHORITIES: [&str; 2] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"];
/// Where the broker writes, as its user.
const WRITTEN: [&str; 3] = ["var/lib/tacho", "run/tacho", "tmp"];

/// Makes the image in a directory; the archive's name.
pub(super) fn make(source: &Source, tree: &Tree, out: &Path) -> Result<String> {
    let stage = out.join("image");
    if stage.exists() {
        fs::remove_dir_all(&stage).context("cannot remove an older directory")?;
    }
    let system = stage.join("system");
    fill(source, tree, &system)?;
    let written = stage.join("written");
    for folder in WRITTEN {
        fs::create_dir_all(written.join(folder))?;
    }
    set_modes(&written)?;
    let layout = Layout::new(stage.join("layout"))?;
    let layers = [(&system, 0), (&written, USER)].map(|(folder, owner)| {
        layout.layer(folder, &Tar { epoch_s: source.epoch_s, owner, inside: None })
    });
    let [system, written] = layers;
    let layers = [system?, written?];
    let config = layout.blob(&config(source, &layers)?)?;
    let manifest = layout.blob(&json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": config.described("application/vnd.oci.image.config.v1+json"),
        "layers": layers.each_ref().map(|layer| {
            layer.blob.described("application/vnd.oci.image.layer.v1.tar+gzip")
        }),
    }))?;
    layout.index(source, &manifest)?;
    let name = format!("tacho-{}-{}.oci.tar", source.version, source.arch);
    let tar = Tar { epoch_s: source.epoch_s, owner: 0, inside: None };
    tar.archive(&layout.root, &out.join(&name))?;
    fs::remove_dir_all(stage)?;
    Ok(name)
}

/// What is in the image and not written to.
fn fill(source: &Source, tree: &Tree, root: &Path) -> Result<()> {
    let place = |path: &str| -> Result<PathBuf> {
        let path = root.join(path.trim_start_matches('/'));
        let folder = path.parent().unwrap_or(root);
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(path)
    };
    fs::copy(tree.root().join("usr/bin/tacho"), place("usr/bin/tacho")?)?;
    for library in source.program.libraries()? {
        let name = library.to_string_lossy().into_owned();
        fs::copy(&library, place(&name)?).with_context(|| format!("cannot copy {name}"))?;
    }
    let Some(authorities) = AUTHORITIES.iter().find(|path| Path::new(path).is_file()) else {
        bail!("no certificates of authorities on this machine: install ca-certificates");
    };
    fs::copy(authorities, place(AUTHORITIES[0])?)?;
    let config = shell::root().join("packaging/container/broker.toml");
    fs::copy(config, place("etc/tacho/broker.toml")?)
        .context("cannot copy packaging/container/broker.toml")?;
    fs::write(place("etc/passwd")?, PASSWD)?;
    fs::write(place("etc/group")?, GROUP)?;
    // Without a user: a container's clients are refused until there is one.
    fs::write(place("etc/tacho/users")?, "")?;
    fs::copy(shell::root().join("LICENSE"), place("usr/share/doc/tacho/copyright")?)?;
    set_modes(root)
}

fn config(source: &Source, layers: &[Layer; 2]) -> Result<Value> {
    Ok(json!({
        "created": time(source.epoch_s)?,
        "architecture": architecture(&source.arch)?,
        "os": "linux",
        "config": {
            "User": format!("{USER}:{USER}"),
            "Entrypoint": ["/usr/bin/tacho"],
            "Cmd": ["broker", "--config", "/etc/tacho/broker.toml"],
            "Env": ["PATH=/usr/bin"],
            "ExposedPorts": {"1883/tcp": {}},
            "Volumes": {"/var/lib/tacho": {}},
            "WorkingDir": "/",
            "StopSignal": "SIGTERM",
            // Not of the Open Container Initiative, and read by Docker.
            "Healthcheck": {
                "Test": ["CMD", "/usr/bin/tacho", "ctl", "health"],
                "Interval": 10_000_000_000_u64,
                "Timeout": 5_000_000_000_u64,
                "Retries": 3,
            },
            "Labels": {
                "org.opencontainers.image.title": "tacho",
                "org.opencontainers.image.version": source.version,
                "org.opencontainers.image.licenses": "Apache-2.0",
            },
        },
        "rootfs": {
            "type": "layers",
            "diff_ids": layers.each_ref().map(|layer| format!("sha256:{}", layer.plain_sha256)),
        },
        "history": layers.each_ref().map(|_| json!({"created_by": "cargo xtask dist"})),
    }))
}

/// The architecture as Go names it.
fn architecture(kernels: &str) -> Result<&'static str> {
    match kernels {
        "x86_64" => Ok("amd64"),
        "aarch64" => Ok("arm64"),
        other => bail!("no name for the architecture {other} in images"),
    }
}

/// A time in the format of RFC 3339.
fn time(epoch_s: u64) -> Result<String> {
    let mut date = shell::command("date");
    date.args(["--utc", "+%Y-%m-%dT%H:%M:%SZ"]).arg(format!("--date=@{epoch_s}"));
    Ok(shell::output(&mut date)?.trim().to_owned())
}

/// A file of the layout, found by its sum.
struct Blob {
    sha256: String,
    bytes: u64,
}

impl Blob {
    fn described(&self, media_type: &str) -> Value {
        let digest = format!("sha256:{}", self.sha256);
        json!({"mediaType": media_type, "digest": digest, "size": self.bytes})
    }
}

struct Layer {
    blob: Blob,
    /// Before it was compressed.
    plain_sha256: String,
}

/// The directory that the archive is made of.
struct Layout {
    root: PathBuf,
}

impl Layout {
    fn new(root: PathBuf) -> Result<Self> {
        fs::create_dir_all(root.join("blobs/sha256")).context("cannot make the image's layout")?;
        fs::write(root.join("oci-layout"), json!({"imageLayoutVersion": "1.0.0"}).to_string())?;
        Ok(Self { root })
    }

    fn layer(&self, folder: &Path, tar: &Tar<'_>) -> Result<Layer> {
        let plain = self.root.join("layer");
        tar.archive(folder, &plain)?;
        let plain_sha256 = sha256(&plain)?;
        gzip(&plain)?;
        Ok(Layer { blob: self.keep(&self.root.join("layer.gz"))?, plain_sha256 })
    }

    fn blob(&self, value: &Value) -> Result<Blob> {
        let path = self.root.join("blob");
        fs::write(&path, value.to_string())?;
        self.keep(&path)
    }

    /// Moves a file to where its sum says.
    fn keep(&self, path: &Path) -> Result<Blob> {
        let (sha256, bytes) = (sha256(path)?, fs::metadata(path)?.len());
        fs::rename(path, self.root.join("blobs/sha256").join(&sha256))?;
        Ok(Blob { sha256, bytes })
    }

    fn index(&self, source: &Source, manifest: &Blob) -> Result<()> {
        let mut described = manifest.described("application/vnd.oci.image.manifest.v1+json");
        described["platform"] = json!({"architecture": architecture(&source.arch)?, "os": "linux"});
        described["annotations"] = json!({
            "org.opencontainers.image.ref.name": source.version,
            "io.containerd.image.name": format!("docker.io/library/tacho:{}", source.version),
        });
        let index = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.index.v1+json",
            "manifests": [described],
        });
        fs::write(self.root.join("index.json"), index.to_string())
            .context("cannot write index.json")
    }
}
