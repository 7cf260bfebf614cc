//! Addresses of a remote broker. The control plane looks up a host name, since a lookup may block;
//! shards use the addresses that are known when they connect.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::config::Remote;

/// The addresses of a remote broker.
#[derive(Debug)]
pub(crate) struct Addresses {
    host: String,
    port: u16,
    is_name: bool,
    /// `Err(None)` before the first answer.
    known: Mutex<Result<Vec<SocketAddr>, Option<String>>>,
    /// A lookup is requested: a link has tried to connect since the last answer, or there was none.
    is_wanted: AtomicBool,
}

impl Addresses {
    pub(crate) fn new(remote: &Remote) -> Self {
        let ip: Option<IpAddr> = remote.host.parse().ok();
        let known = match ip {
            Some(ip) => Ok(vec![SocketAddr::new(ip, remote.port)]),
            None => Err(None),
        };
        Self {
            host: remote.host.clone(),
            port: remote.port,
            is_name: ip.is_none(),
            known: Mutex::new(known),
            is_wanted: AtomicBool::new(ip.is_none()),
        }
    }

    /// The address of the next attempt, or why there is none; `None` means that the first lookup is
    /// not answered yet. Several addresses take turns.
    pub(crate) fn next(&self, attempt: u32) -> Result<SocketAddr, Option<String>> {
        if self.is_name {
            self.is_wanted.store(true, Ordering::Relaxed);
        }
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match &*known {
            Ok(addresses) => addresses
                .get(attempt as usize % addresses.len().max(1))
                .copied()
                .ok_or_else(|| Some(self.no_address())),
            Err(why) => Err(why.clone()),
        }
    }

    fn no_address(&self) -> String {
        format!("the host name {} has no address", self.host)
    }

    /// Whether the host is a name.
    pub(crate) const fn is_name(&self) -> bool {
        self.is_name
    }

    /// The host and port to look up, if a lookup is requested.
    pub(crate) fn wanted(&self) -> Option<(&str, u16)> {
        self.is_wanted.swap(false, Ordering::Relaxed).then_some((&*self.host, self.port))
    }

    /// Stores the answer of a lookup. A failed lookup keeps the known addresses.
    pub(crate) fn answered(&self, answer: io::Result<Vec<SocketAddr>>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match answer {
            Ok(addresses) if !addresses.is_empty() => *known = Ok(addresses),
            Ok(_) if known.is_err() => *known = Err(Some(self.no_address())),
            Err(error) if known.is_err() => {
                *known = Err(Some(format!("cannot look up the host name {}: {error}", self.host)));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(host: &str) -> Addresses {
        Addresses::new(&Remote { host: host.to_owned(), port: 1883, tls: None })
    }

    #[test]
    fn numeric_address_needs_no_lookup() {
        let addresses = addresses("::1");
        assert_eq!(addresses.next(3).unwrap().to_string(), "[::1]:1883");
        assert_eq!((addresses.is_name(), addresses.wanted()), (false, None));
    }

    #[test]
    fn every_attempt_requests_a_lookup_and_known_addresses_stay() {
        let addresses = addresses("far.example");
        assert_eq!(addresses.wanted(), Some(("far.example", 1883)));
        assert_eq!(addresses.wanted(), None);
        assert_eq!(addresses.next(0), Err(None));
        addresses.answered(Err(io::ErrorKind::NotFound.into()));
        assert!(addresses.next(1).unwrap_err().unwrap().contains("cannot look up"));
        assert!(addresses.wanted().is_some());
        let two = ["10.0.0.1:1883", "10.0.0.2:1883"].map(|text| text.parse().unwrap());
        addresses.answered(Ok(two.to_vec()));
        assert_eq!([addresses.next(4), addresses.next(5)], two.map(Ok));
        addresses.answered(Err(io::ErrorKind::NotFound.into()));
        assert_eq!(addresses.next(6), Ok(two[0]));
    }
}
