//! The Unix socket: found by `tacho ctl` in a folder, and open to the broker's own user alone.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, MetadataExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use crate::config::ManagementSocket;

/// The folder of the sockets where the user has none of its own.
const SYSTEM_FOLDER: &str = "/run/tacho";
/// The folder of the sockets within that of the user.
const FOLDER: &str = "tacho";

/// A socket that listens; its file goes with it.
pub(crate) struct BoundSocket {
    listener: UnixListener,
    path: PathBuf,
    /// Device and inode: another broker may have replaced the file.
    identity: (u64, u64),
}

/// Why there is no socket.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// Another broker has it.
    #[error("{0}: another broker answers there")]
    Taken(String),
    /// There is something else.
    #[error("{0} is there and no socket: remove it, or choose another path")]
    NoSocket(String),
    /// Other users could put sockets of their own there.
    #[error("{0} belongs to another user or others may write to it: chmod 700")]
    OpenFolder(String),
    /// The system refuses.
    #[error("{path}: {source}")]
    System {
        /// The file or folder.
        path: String,
        /// The error of the system.
        source: io::Error,
    },
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> SocketError {
    let path = path.display().to_string();
    |source| SocketError::System { path, source }
}

/// Whether processes of a user may use the API: of the broker's own, and of root.
pub(super) fn admits(uid: u32) -> bool {
    uid == 0 || uid == own_uid()
}

fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The folder of the sockets of this user's brokers.
pub fn folder() -> PathBuf {
    let of_user = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    match of_user.filter(|folder| folder.is_absolute()) {
        Some(folder) => folder.join(FOLDER),
        None => SYSTEM_FOLDER.into(),
    }
}

impl BoundSocket {
    /// The socket that is wanted, if one is. Without one that need not be at a certain place
    /// clients are served all the same, and the log tells why.
    pub(crate) fn open(
        wanted: Option<&ManagementSocket>,
        port: u16,
    ) -> Result<Option<Self>, SocketError> {
        match wanted {
            None | Some(ManagementSocket::None) => Ok(None),
            Some(ManagementSocket::Path(path)) => Self::bind(path).map(Some),
            Some(ManagementSocket::Auto) => Ok(Self::of_port(port)
                .inspect_err(|error| {
                    tracing::info!(
                        "no management socket: {error}; `tacho ctl` needs one \
                         (--management-socket PATH; `none` where that is intended)"
                    );
                })
                .ok()),
        }
    }

    /// The socket of the broker at this port, in the folder for such sockets.
    fn of_port(port: u16) -> Result<Self, SocketError> {
        let folder = folder();
        prepare(&folder)?;
        Self::bind(&folder.join(format!("{port}.sock")))
    }

    /// The socket at this path. What an earlier broker has left there is replaced.
    fn bind(path: &Path) -> Result<Self, SocketError> {
        let shown = || path.display().to_string();
        match fs::symlink_metadata(path) {
            Ok(about) if !about.file_type().is_socket() => {
                return Err(SocketError::NoSocket(shown()));
            }
            Ok(_) if UnixStream::connect(path).is_ok() => return Err(SocketError::Taken(shown())),
            Ok(_) => fs::remove_file(path).map_err(failed(path))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(path)(error)),
        }
        let listener = UnixListener::bind(path).map_err(failed(path))?;
        fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(failed(path))?;
        listener.set_nonblocking(true).map_err(failed(path))?;
        let about = fs::symlink_metadata(path).map_err(failed(path))?;
        Ok(Self { listener, path: path.to_owned(), identity: (about.dev(), about.ino()) })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn listener(&self) -> io::Result<UnixListener> {
        self.listener.try_clone()
    }
}

impl Drop for BoundSocket {
    fn drop(&mut self) {
        let is_own = |about: fs::Metadata| (about.dev(), about.ino()) == self.identity;
        if fs::symlink_metadata(&self.path).is_ok_and(is_own) {
            // A file that stays is replaced by the next broker.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Makes the folder if it is not there. Others must not be able to replace what is in it.
fn prepare(folder: &Path) -> Result<(), SocketError> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Ok(()) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(failed(folder)(error)),
    }
    let about = fs::symlink_metadata(folder).map_err(failed(folder))?;
    let is_safe = about.is_dir()
        && (about.uid() == own_uid() || about.uid() == 0)
        && about.mode() & 0o022 == 0;
    match is_safe {
        true => Ok(()),
        false => Err(SocketError::OpenFolder(folder.display().to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_socket_is_replaced_and_a_live_one_is_not() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("1883.sock");
        drop(UnixListener::bind(&path).expect("binds"));
        assert!(path.exists(), "the file stays behind");
        let socket = BoundSocket::bind(&path).expect("is replaced");
        let mode = fs::metadata(&path).expect("is there").mode();
        assert_eq!(mode & 0o777, 0o600);
        let error = BoundSocket::bind(&path).err().expect("is taken").to_string();
        assert!(error.contains("1883.sock: another broker answers there"), "{error}");
        drop(socket);
        assert!(!path.exists(), "it goes with its broker");
    }

    #[test]
    fn a_socket_that_replaced_ours_stays() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("a.sock");
        let socket = BoundSocket::bind(&path).expect("binds");
        fs::remove_file(&path).expect("is removed");
        let _other = UnixListener::bind(&path).expect("binds");
        drop(socket);
        assert!(path.exists());
    }

    #[test]
    fn files_and_folders_of_others_are_refused() {
        let place = tempfile::tempdir().expect("a folder");
        let file = place.path().join("file");
        fs::write(&file, "x").expect("writes");
        assert!(matches!(BoundSocket::bind(&file), Err(SocketError::NoSocket(_))));
        assert_eq!(fs::read(&file).expect("is there"), b"x");
        let folder = place.path().join("folder");
        prepare(&folder).expect("is made");
        assert_eq!(fs::metadata(&folder).expect("is there").mode() & 0o777, 0o700);
        prepare(&folder).expect("is there");
        fs::set_permissions(&folder, Permissions::from_mode(0o770)).expect("changes");
        assert!(matches!(prepare(&folder), Err(SocketError::OpenFolder(_))));
        assert!(matches!(prepare(&file), Err(SocketError::OpenFolder(_))));
        assert!(prepare(&place.path().join("a/b")).is_err(), "its parent is not made");
    }
}
