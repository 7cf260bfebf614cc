//! `tacho passwd`: users of a password file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::num::NonZeroU32;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use clap::Args;
use tacho_access::{
    EmqxHash, SCRAM_ITERATIONS, SCRAM_ITERATIONS_ALLOWED, Scheme, ScramHash, StoredPassword, Users,
    check_name, delete_user, emqx_users, hash_plain, read_text, saslprepared, set_user, set_users,
};

use crate::exit::{self, Failure};
use crate::password_input::{PASSWORD_BYTES_MAX, read_password};

/// Names of superusers that one warning shows.
const SUPERUSERS_SHOWN_MAX: usize = 10;

/// Add, change, delete and import users in a password file.
///
/// The file is for `tacho broker --password-file` and mosquitto 2.1 alike; lines of older versions
/// stay as they are. The password is read from the terminal without echo, or else from the first
/// line of standard input. A running broker sees the change.
#[derive(Args, Debug)]
pub(crate) struct PasswdArguments {
    /// Create the file; one that exists is overwritten.
    #[arg(short, long, conflicts_with_all = ["delete", "upgrade"])]
    create: bool,
    /// Take the password from the command line, where other users of this machine can see it.
    #[arg(short, long, conflicts_with = "delete", requires = "password")]
    batch: bool,
    /// Delete the user.
    #[arg(short = 'D', long)]
    delete: bool,
    /// Hash the plain passwords of the file.
    #[arg(short = 'U', long, conflicts_with_all = ["delete", "batch", "import_emqx", "user"])]
    upgrade: bool,
    /// Add the users of a file for EMQX's `import_users` (.csv or .json); those that exist change.
    #[arg(long, value_name = "USERS", conflicts_with_all = ["delete", "batch", "user"])]
    import_emqx: Option<PathBuf>,
    /// How EMQX hashed their passwords: sha256:prefix, sha512:suffix, sha:disable, bcrypt,
    /// pbkdf2:sha256:4096, ... (plain passwords need none).
    #[arg(long, value_name = "HASH", requires = "import_emqx")]
    hash: Option<EmqxHash>,
    /// Store the keys of SCRAM with this hash, sha256 or sha512, so that clients can prove the
    /// password without sending it (methods SCRAM-SHA-256 and SCRAM-SHA-512 of MQTT 5.0). mosquitto
    /// does not read such lines.
    #[arg(long, value_name = "HASH", conflicts_with_all = ["delete", "import_emqx"])]
    scram: Option<ScramHash>,
    /// Rounds of SCRAM, which each client has to compute, from 4096 to 10000000.
    #[arg(long, value_name = "N", requires = "scram", default_value_t = SCRAM_ITERATIONS,
          value_parser = iterations)]
    iterations: NonZeroU32,
    /// The password file.
    file: PathBuf,
    /// The user name.
    #[arg(required_unless_present_any = ["upgrade", "import_emqx"])]
    user: Option<String>,
    /// The password, with --batch.
    #[arg(requires = "batch")]
    password: Option<String>,
}

impl PasswdArguments {
    /// How passwords are stored.
    fn scheme(&self) -> Scheme {
        let iterations = self.iterations;
        self.scram.map_or(Scheme::DEFAULT, |hash| Scheme::Scram { hash, iterations })
    }
}

/// Runs the command; its exit code.
pub(crate) fn passwd(arguments: &PasswdArguments) -> Result<u8, Failure> {
    let file = &arguments.file;
    let before = match (arguments.create, file.exists()) {
        (true, _) => String::new(),
        (false, true) => read_text(file).map_err(invalid)?,
        (false, false) => {
            return Err(invalid(format!("{} does not exist: -c creates it", file.display())));
        }
    };
    let after = if arguments.upgrade {
        upgrade(file, &before, arguments.scheme())?
    } else if let Some(from) = &arguments.import_emqx {
        import(from, arguments.hash, &before)?
    } else {
        change(arguments, &before)?
    };
    write(file, &after).map_err(|error| {
        Failure::new(exit::UNEXPECTED, format!("cannot write {}: {error}", file.display()))
    })?;
    // What was there before may be wrong, and would keep a broker from starting.
    if let Err(error) = Users::parse(&file.display().to_string(), &after) {
        eprintln!("warning: a broker will not take this file: {error}");
    }
    Ok(exit::OK)
}

fn invalid(error: impl std::fmt::Display) -> Failure {
    Failure::new(exit::INVALID_CONFIG, error)
}

/// One user added, changed or deleted.
fn change(arguments: &PasswdArguments, before: &str) -> Result<String, Failure> {
    let PasswdArguments { delete, file, user, password, .. } = arguments;
    let user = user.as_deref().unwrap_or_default();
    check_name(user).map_err(invalid)?;
    if *delete {
        return delete_user(before, user).ok_or_else(|| {
            let (user, file) = (user.escape_debug(), file.display());
            invalid(format!("the user `{user}` is not in {file}"))
        });
    }
    let password = match password {
        Some(password) => password.clone(),
        None => read_password(true).map_err(invalid)?,
    };
    if password.is_empty() || password.len() > PASSWORD_BYTES_MAX {
        return Err(invalid(format!("a password has from 1 to {PASSWORD_BYTES_MAX} bytes")));
    }
    if arguments.scram.is_some() {
        check_scram(user, &password).map_err(invalid)?;
    }
    let stored = StoredPassword::make(password.as_bytes(), arguments.scheme())
        .map_err(|error| Failure::new(exit::UNEXPECTED, error))?;
    Ok(set_user(before, user, &stored))
}

/// Client and server must take name and password for the same text.
fn check_scram(user: &str, password: &str) -> Result<(), String> {
    match saslprepared(user) {
        Some(prepared) if prepared == user => {}
        Some(prepared) => {
            let (user, prepared) = (user.escape_debug(), prepared.escape_debug());
            return Err(format!("clients of SCRAM send `{user}` as `{prepared}`: use that name"));
        }
        None => return Err("the user name has a character that SCRAM does not allow".to_owned()),
    }
    match saslprepared(password) {
        Some(prepared) if !prepared.is_empty() => Ok(()),
        _ => Err("the password has a character that SCRAM does not allow".to_owned()),
    }
}

fn iterations(text: &str) -> Result<NonZeroU32, String> {
    let allowed = SCRAM_ITERATIONS_ALLOWED;
    let iterations = text.parse().ok().filter(|n: &NonZeroU32| allowed.contains(&n.get()));
    let (min, max) = (allowed.start(), allowed.end());
    iterations.ok_or_else(|| format!("`{text}` is not a number from {min} to {max}"))
}

/// Plain passwords hashed.
fn upgrade(file: &Path, before: &str, scheme: Scheme) -> Result<String, Failure> {
    let shown = file.display().to_string();
    let (after, hashed) = hash_plain(&shown, before, scheme).map_err(invalid)?;
    println!("{shown}: {hashed} plain passwords hashed");
    Ok(after)
}

/// Users of EMQX added.
fn import(from: &Path, hash: Option<EmqxHash>, before: &str) -> Result<String, Failure> {
    let text = read_text(from).map_err(invalid)?;
    let shown = from.display().to_string();
    let users = emqx_users(&shown, &text, hash).map_err(invalid)?;
    let pairs = users.iter().map(|user| (&*user.name, &user.stored));
    let (after, changed) = set_users(before, pairs);
    println!("{shown}: {} users added, {changed} changed", users.len() - changed);
    let superusers: Vec<&str> =
        users.iter().filter(|user| user.is_superuser).map(|user| &*user.name).collect();
    if !superusers.is_empty() {
        let names = superusers[..superusers.len().min(SUPERUSERS_SHOWN_MAX)].join(", ");
        eprintln!(
            "warning: {} were superusers ({}{}): give them their rights in the access list",
            superusers.len(),
            names.escape_debug(),
            if superusers.len() > SUPERUSERS_SHOWN_MAX { ", ..." } else { "" }
        );
    }
    Ok(after)
}

/// Replaces the file as a whole: a broker that reads it meanwhile finds the old one or the new one.
/// Owner and mode stay; a new file is for its owner only, or also for the group of a directory
/// whose files are that group's.
fn write(path: &Path, text: &str) -> io::Result<()> {
    // A link stays one.
    let path = if path.exists() { fs::canonicalize(path)? } else { path.to_owned() };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = path.with_file_name(format!(".{name}.{}", std::process::id()));
    let written = write_beside(&path, &beside, text).and_then(|()| fs::rename(&beside, &path));
    if written.is_err() {
        // The error that matters is the first one.
        let _ = fs::remove_file(&beside);
    }
    written
}

fn write_beside(path: &Path, beside: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(beside)?;
    if let Ok(before) = fs::metadata(path) {
        keep_owner(&file, &before)?;
        file.set_permissions(before.permissions())?;
    } else if path.parent().is_some_and(is_shared_with_group) {
        file.set_permissions(fs::Permissions::from_mode(0o640))?;
    }
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Whether files of a directory get its group, and it is closed to others: such is the folder in
/// which the broker's user reads what root writes.
fn is_shared_with_group(directory: &Path) -> bool {
    const OF_GROUP: u32 = 0o2050;
    const OF_OTHERS: u32 = 0o007;
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    let mode = fs::metadata(directory).map_or(0, |about| about.permissions().mode());
    mode & (OF_GROUP | OF_OTHERS) == OF_GROUP
}

fn keep_owner(file: &File, before: &fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt as _;

    let mine = file.metadata()?;
    if (mine.uid(), mine.gid()) == (before.uid(), before.gid()) {
        return Ok(());
    }
    std::os::unix::fs::fchown(file, Some(before.uid()), Some(before.gid()))
}
