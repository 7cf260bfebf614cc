//! What each listener lets in: before its clients are heard, connections of its proxies only, so
//! many, and so many new ones per second, in all and per address; then so many messages of each.
//!
//! A limit that is not configured costs a branch; connections are counted in any case.

mod addresses;

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use crate::config::{ConnectionLimits, Listener, TrustedProxies};
use crate::permits::{Permit, Quota};
use crate::publish_limit::PublishLimit;
use crate::rate::{Bucket, Rate};
use addresses::{AddressPermit, AddressTable};

/// The gate of one listener.
pub(crate) struct Gate {
    /// Connections are those of proxies, and begin with a PROXY header.
    pub(crate) proxies: Option<TrustedProxies>,
    /// Those that it has, and may have.
    connections: Arc<Quota>,
    new: Option<(Rate, Mutex<Bucket>)>,
    addresses: Option<Arc<AddressTable>>,
    /// How much each of its clients may publish.
    pub(crate) publish: Option<Arc<PublishLimit>>,
}

/// What a connection holds of the broker's limits and of its listener's, on whichever shard it is.
#[derive(Debug)]
pub(crate) struct ConnectionPermits {
    _socket: Permit,
    _listener: Option<Permit>,
    address: Option<Box<AddressPermit>>,
}

/// Which limit a connection exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Excess {
    /// The listener has as many connections as it may have.
    ListenerFull,
    /// It has too many new ones.
    ListenerRate,
    /// The address has as many connections as one may have.
    AddressFull,
    /// It has too many new ones.
    AddressRate,
}

impl Excess {
    pub(crate) const fn sentence(self) -> &'static str {
        match self {
            Self::ListenerFull => "the listener has `connections_max` connections",
            Self::ListenerRate => "the listener has more than `connections_per_s_max` new ones",
            Self::AddressFull => "the address has `connections_per_address_max` connections",
            Self::AddressRate => {
                "the address has more than `connections_per_address_per_s_max` new connections"
            }
        }
    }

    pub(crate) const fn is_of_address(self) -> bool {
        matches!(self, Self::AddressFull | Self::AddressRate)
    }
}

impl ConnectionPermits {
    /// A connection that holds nothing but its socket.
    pub(crate) const fn of_socket(socket: Permit) -> Self {
        Self { _socket: socket, _listener: None, address: None }
    }
}

impl Gate {
    pub(crate) fn new(listener: &Listener) -> Self {
        let ConnectionLimits { max, per_s_max, per_address_max, per_address_per_s_max } =
            listener.connections;
        // As many at once as in a second.
        let rate = |per_s: u32| Rate::new(per_s, per_s);
        let address_rate = per_address_per_s_max.map(rate);
        let has_addresses = per_address_max.is_some() || address_rate.is_some();
        Self {
            proxies: listener.proxies.clone(),
            connections: Quota::new(max.map_or(usize::MAX, |max| max as usize)),
            new: per_s_max.map(|per_s| (rate(per_s), Mutex::default())),
            addresses: has_addresses.then(|| AddressTable::new(per_address_max, address_rate)),
            publish: PublishLimit::new(&listener.publish),
        }
    }

    /// A connection comes that its address may have, see [`Self::enter_from`].
    pub(crate) fn enter(&self, permits: &mut ConnectionPermits, now_ns: u64) -> Result<(), Excess> {
        permits._listener = Some(self.connections.try_take().ok_or(Excess::ListenerFull)?);
        if let Some((rate, bucket)) = &self.new {
            let mut bucket = bucket.lock().unwrap_or_else(PoisonError::into_inner);
            if !bucket.try_take(rate, 1, now_ns) {
                return Err(Excess::ListenerRate);
            }
        }
        Ok(())
    }

    /// Connections that have entered and are open.
    pub(crate) fn connections(&self) -> usize {
        self.connections.used()
    }

    /// Whether [`Self::enter_from`] has anything to say.
    pub(crate) const fn asks_for_addresses(&self) -> bool {
        self.addresses.is_some()
    }

    /// The address of the client is known. False if it is admitted without being counted, for lack
    /// of room.
    pub(crate) fn enter_from(
        &self,
        permits: &mut ConnectionPermits,
        address: IpAddr,
        now_ns: u64,
    ) -> Result<bool, Excess> {
        let Some(addresses) = &self.addresses else { return Ok(true) };
        permits.address = addresses.enter(address, now_ns)?.map(Box::new);
        Ok(permits.address.is_some())
    }
}

#[cfg(test)]
mod tests;
