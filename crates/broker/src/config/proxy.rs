//! Proxies in front of listeners.

use std::net::{IpAddr, SocketAddr};

use tacho_access::AddressRange;

/// Where the proxies of a listener on loopback are, unless it says more.
const LOOPBACK: [&str; 2] = ["127.0.0.0/8", "::1"];

/// The addresses of the proxies whose PROXY headers a listener believes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustedProxies(Vec<AddressRange>);

impl TrustedProxies {
    /// From the keys `proxy_protocol` and `proxy_trusted` of the listener at `address`.
    pub(super) fn resolve(
        proxy_protocol: Option<bool>,
        proxy_trusted: Option<&[String]>,
        address: SocketAddr,
    ) -> Result<Option<Self>, String> {
        if proxy_protocol != Some(true) {
            return match proxy_trusted {
                Some(_) => Err("`proxy_trusted` needs `proxy_protocol = true`".to_owned()),
                None => Ok(None),
            };
        }
        let loopback = LOOPBACK.map(str::to_owned);
        let trusted = match proxy_trusted {
            Some([]) => return Err("`proxy_trusted` is empty: no proxy could connect".to_owned()),
            Some(trusted) => trusted,
            None if address.ip().is_loopback() => &loopback,
            None => {
                return Err(
                    "`proxy_protocol` needs `proxy_trusted`, the addresses of the proxies \
                            such as [\"10.0.0.0/8\"]: others could claim any address"
                        .to_owned(),
                );
            }
        };
        let ranges = trusted.iter().map(|text| AddressRange::parse(text));
        match ranges.collect() {
            Ok(ranges) => Ok(Some(Self(ranges))),
            Err(wrong) => Err(format!("`proxy_trusted`: {wrong}")),
        }
    }

    /// Whether the proxy at this address is believed.
    pub(crate) fn trusts(&self, address: IpAddr) -> bool {
        self.0.iter().any(|range| range.contains(address))
    }

    /// The keys, as in the configuration file.
    pub(super) fn describe(&self) -> String {
        let ranges: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        format!("proxy_protocol = true\nproxy_trusted = {}\n", toml::Value::from(ranges))
    }
}
