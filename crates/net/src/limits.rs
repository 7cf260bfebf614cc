//! The number of descriptors that the process may open.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// How many descriptors this process may have open. `u64::MAX` stands for no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FdLimit {
    /// The limit in force.
    pub soft: u64,
    /// What the soft limit could be raised to.
    pub hard: u64,
}

/// macOS refuses a soft limit above `OPEN_MAX`, even where the hard limit is infinite.
const OPEN_MAX: u64 = 10_240;

/// Raises the soft limit of descriptors to the hard limit and returns what is now in force.
///
/// # Errors
/// When the system refuses; the limits are then unchanged.
pub fn raise_fd_limit() -> io::Result<FdLimit> {
    let before = getrlimit(Resource::Nofile);
    if before.current == before.maximum {
        return Ok(fd_limit());
    }
    let raised = Rlimit { current: before.maximum, maximum: before.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        if before.current.is_none_or(|soft| soft >= OPEN_MAX) {
            return Err(error.into());
        }
        setrlimit(Resource::Nofile, Rlimit { current: Some(OPEN_MAX), maximum: before.maximum })?;
    }
    Ok(fd_limit())
}

fn fd_limit() -> FdLimit {
    let limit = getrlimit(Resource::Nofile);
    FdLimit { soft: limit.current.unwrap_or(u64::MAX), hard: limit.maximum.unwrap_or(u64::MAX) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn soft_limit_reaches_hard_limit() -> io::Result<()> {
        let limit = raise_fd_limit()?;
        if cfg!(target_os = "linux") {
            assert_eq!(limit.soft, limit.hard);
        }
        assert_eq!(raise_fd_limit()?, limit);
        Ok(())
    }
}
