//! A broker on a free port, in the test's own process.

use std::net::SocketAddr;

use tacho_broker::{
    AccessReloaded, AuthMethods, Broker, GivenSockets, RawConfig, Reloaded, SharedSubscription,
};
use tacho_codec::{Connect, ConnectProperties, Version};

use crate::client::{Client, connect};

/// A broker on a free loopback port, stopped when dropped.
pub struct TestBroker {
    pub address: SocketAddr,
    broker: Option<Broker>,
}

impl TestBroker {
    pub fn start(shards: usize) -> Self {
        Self::configured(&format!("shards = {shards}"))
    }

    /// With a configuration file's text; the listener is added.
    pub fn configured(toml: &str) -> Self {
        Self::with_methods(toml, AuthMethods::default())
    }

    /// The same, with methods of authentication.
    pub fn with_methods(toml: &str, methods: AuthMethods) -> Self {
        let mut raw: RawConfig = toml::from_str(toml).expect("a valid test configuration");
        raw.listen = Some(vec!["127.0.0.1:0".parse().unwrap()]);
        // Nothing that a test has not asked for.
        raw.sys_interval_s = raw.sys_interval_s.or(Some(0));
        let config = raw.resolve().expect("consistent");
        let broker = Broker::start_with(config, methods, GivenSockets::default()).expect("starts");
        Self { address: broker.addresses()[0], broker: Some(broker) }
    }

    /// The same, and it serves figures on another free port.
    pub fn with_metrics(toml: &str) -> Self {
        Self::configured(&format!("metrics = '127.0.0.1:0'\n{toml}"))
    }

    pub fn metrics_address(&self) -> SocketAddr {
        self.broker.as_ref().unwrap().metrics_address().unwrap()
    }

    /// Where the management API is served by HTTP.
    pub fn management_address(&self) -> SocketAddr {
        self.broker.as_ref().unwrap().management_address().unwrap()
    }

    /// The sum of one counter over all shards.
    pub fn counter(&self, name: &str) -> u64 {
        let broker = self.broker.as_ref().unwrap();
        let values = broker.stats().iter().flat_map(|s| s.values());
        values.filter(|(n, _)| *n == name).map(|(_, v)| v).sum()
    }

    /// Of all its listeners.
    pub fn addresses(&self) -> &[SocketAddr] {
        self.broker.as_ref().unwrap().addresses()
    }

    /// Reads the files of access control again.
    pub fn reload_access(&self) -> AccessReloaded {
        self.broker.as_ref().unwrap().access().reload()
    }

    /// Reads the certificates, CAs and revocation lists of its listeners again.
    pub fn reload_certificates(&self) -> Reloaded {
        self.broker.as_ref().unwrap().certificates().reload()
    }

    /// How its bridges stand.
    pub fn bridges(&self) -> Vec<tacho_broker::bridge::Status> {
        self.broker.as_ref().unwrap().bridges()
    }

    /// What the broker says of a shared subscription; `None` when it has no members.
    pub fn shared(&self, filter: &str) -> Option<SharedSubscription> {
        let mut all = self.broker.as_ref().unwrap().shared_subscriptions().into_iter();
        all.find(|shared| shared.filter == filter)
    }

    pub fn client(&self, version: Version) -> Client {
        Client::open(self.address, version)
    }

    /// A connected client with a clean session.
    pub fn connected(&self, client_id: &str, version: Version) -> Client {
        let mut client = self.client(version);
        client.connect(&connect(client_id, version));
        client
    }

    /// A connected client whose session outlives its connections; under 5.0 `window` is its Receive
    /// Maximum.
    pub fn durable(&self, client_id: &str, version: Version, window: Option<u16>) -> Client {
        let v5 = version == Version::V5;
        let properties = ConnectProperties {
            session_expiry_s: v5.then_some(60),
            receive_maximum: window.filter(|_| v5),
            ..Default::default()
        };
        let mut client = self.client(version);
        client.connect(&Connect { clean_start: false, properties, ..connect(client_id, version) });
        client
    }

    pub fn stop(&mut self) {
        if let Some(broker) = self.broker.take() {
            broker.stop();
            broker.join().expect("ends well");
        }
    }

    /// Asks it to stop without waiting.
    pub fn begin_stop(&self) {
        self.broker.as_ref().unwrap().stop();
    }
}

impl Drop for TestBroker {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Runs a test against a broker with one shard and against one with several.
pub fn each_broker(test: impl Fn(&TestBroker)) {
    for shards in [1, 3] {
        test(&TestBroker::start(shards));
    }
}
