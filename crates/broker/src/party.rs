//! What an address stands for.

use std::net::{IpAddr, Ipv6Addr};

/// What is counted, limited and banned as one: an IPv4 address, or the network of an IPv6 address,
/// of which its owner has 2^64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Party(IpAddr);

impl Party {
    /// The address, or the first one of the network.
    pub(crate) const fn address(self) -> IpAddr {
        self.0
    }

    pub(crate) fn of(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V4(address) => IpAddr::V4(address),
            IpAddr::V6(address) => {
                let network = address.to_bits() & !u128::from(u64::MAX);
                IpAddr::V6(Ipv6Addr::from_bits(network))
            }
        })
    }
}
