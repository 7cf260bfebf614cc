//! Where the other broker is. A name is looked up by the control plane, which may wait for the
//! answer; shards take what is known when they connect.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::config::Remote;

/// The addresses of another broker.
#[derive(Debug)]
pub(crate) struct Addresses {
    host: String,
    port: u16,
    is_name: bool,
    /// `None` as an error: nobody has answered yet.
    known: Mutex<Result<Vec<SocketAddr>, Option<String>>>,
    /// Somebody has tried to connect since the last answer, or there was none.
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

    /// The address of the next attempt, or why there is none; `None` is that nobody has answered
    /// yet. Several addresses take turns.
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
        format!("the name {} has no address", self.host)
    }

    /// Whether it is a name.
    pub(crate) const fn is_name(&self) -> bool {
        self.is_name
    }

    /// What is to be looked up, if somebody wants to know.
    pub(crate) fn wanted(&self) -> Option<(&str, u16)> {
        self.is_wanted.swap(false, Ordering::Relaxed).then_some((&*self.host, self.port))
    }

    /// The answer. One that tells nothing does not take away what is known.
    pub(crate) fn answered(&self, answer: io::Result<Vec<SocketAddr>>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match answer {
            Ok(addresses) if !addresses.is_empty() => *known = Ok(addresses),
            Ok(_) if known.is_err() => *known = Err(Some(self.no_address())),
            Err(error) if known.is_err() => {
                *known = Err(Some(format!("the name {} is not known: {error}", self.host)));
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
    fn an_address_is_known_and_nobody_asks() {
        let addresses = addresses("::1");
        assert_eq!(addresses.next(3).unwrap().to_string(), "[::1]:1883");
        assert_eq!((addresses.is_name(), addresses.wanted()), (false, None));
    }

    #[test]
    fn a_name_is_asked_for_again_with_every_attempt_and_stays_known() {
        let addresses = addresses("far.example");
        assert_eq!(addresses.wanted(), Some(("far.example", 1883)));
        assert_eq!(addresses.wanted(), None);
        assert_eq!(addresses.next(0), Err(None));
        addresses.answered(Err(io::ErrorKind::NotFound.into()));
        assert!(addresses.next(1).unwrap_err().unwrap().contains("is not known"));
        assert!(addresses.wanted().is_some());
        let two = ["10.0.0.1:1883", "10.0.0.2:1883"].map(|text| text.parse().unwrap());
        addresses.answered(Ok(two.to_vec()));
        assert_eq!([addresses.next(4), addresses.next(5)], two.map(Ok));
        addresses.answered(Err(io::ErrorKind::NotFound.into()));
        assert_eq!(addresses.next(6), Ok(two[0]));
    }
}
