//! Sockets of a listener: how many connections wait, and the kernel's buffers.

use tacho_net::ListenSettings;

use super::{ConfigError, check_range};

/// Pending connections the kernel keeps per listener; it lowers this to `net.core.somaxconn`.
const BACKLOG: u32 = 4_096;

/// What a listener asks the kernel for. Absent: what is usual.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketSettings {
    /// Connections that wait to be accepted.
    pub backlog: Option<u32>,
    /// Bytes of a connection that wait to be sent, as the kernel counts them.
    pub send_buffer_bytes: Option<u32>,
    /// Bytes of a connection that wait to be read.
    pub receive_buffer_bytes: Option<u32>,
}

impl SocketSettings {
    fn keys(&self) -> [(&'static str, Option<u32>); 3] {
        [
            ("backlog", self.backlog),
            ("send_buffer_bytes", self.send_buffer_bytes),
            ("receive_buffer_bytes", self.receive_buffer_bytes),
        ]
    }

    /// The settings, if they can be used.
    pub(super) fn checked(self) -> Result<Self, ConfigError> {
        let backlog = self.backlog.unwrap_or(1).into();
        check_range("backlog", backlog, 1, 1_000_000, "from 1 to 1000000, or absent")?;
        for (key, bytes) in &self.keys()[1..] {
            let bytes = bytes.unwrap_or(4_096).into();
            check_range(key, bytes, 4_096, 1 << 30, "from 4096 to 1073741824, or absent")?;
        }
        Ok(self)
    }

    /// Whether any is set.
    pub(super) fn is_any(&self) -> bool {
        *self != Self::default()
    }

    /// The keys, as in the configuration file.
    pub(super) fn describe(&self) -> String {
        let set = self.keys().into_iter().filter_map(|(key, value)| Some((key, value?)));
        set.map(|(key, value)| format!("{key} = {value}\n")).collect()
    }

    /// The same for the system.
    pub(crate) fn listen(&self) -> ListenSettings {
        ListenSettings {
            backlog: self.backlog.unwrap_or(BACKLOG),
            send_buffer_bytes: self.send_buffer_bytes,
            receive_buffer_bytes: self.receive_buffer_bytes,
        }
    }
}
