//! How brokers are reached: the generator's transport, from flags and scenario.

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use tacho_load::{TlsClient, TlsClientSettings, Transport, WsClient};
use tacho_scenario::{BrokerUrl, Scheme, Target, Template, TestCa, TlsOptions};

use crate::exit::{self, Failure};

/// Transport and certificates of all brokers under test.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Transport")]
pub(crate) struct TransportArguments {
    /// Transport of the brokers that the run starts; with --broker the URL decides
    ///
    /// Tacho's own broker creates certificates for the run, which the clients trust. The command of
    /// --broker-cmd needs certificates of its own.
    #[arg(long, value_name = "HOW")]
    pub(super) transport: Option<TransportArgument>,

    /// Certificates to trust with mqtts:// and wss://, instead of the system's (PEM)
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,

    /// Client certificate with its chain (PEM); a template such as 'certs/{{i}}.pem' gives each
    /// client its own
    #[arg(long, value_name = "FILE", requires = "key", value_parser = Template::parse)]
    cert: Option<Template>,

    /// Private key of the client certificate (PEM), may be a template, too
    #[arg(long, value_name = "FILE", requires = "cert", value_parser = Template::parse)]
    key: Option<Template>,

    /// Sign a certificate for each client with this CA, instead of --cert (PEM)
    ///
    /// Its common name is the client's user name, or else its client identifier. It exists in
    /// memory only.
    #[arg(long, value_name = "FILE", requires = "test_ca_key", conflicts_with = "cert")]
    test_ca: Option<PathBuf>,

    /// Private key of the CA of --test-ca (PEM, PKCS#8)
    #[arg(long, value_name = "FILE", requires = "test_ca")]
    test_ca_key: Option<PathBuf>,

    /// Common name in the certificates of --test-ca, a template such as 'meter-{{i}}'
    #[arg(long, value_name = "NAME", requires = "test_ca", value_parser = Template::parse)]
    test_ca_name: Option<Template>,

    /// Do not verify the broker's certificate; the run record notes it
    #[arg(long, conflicts_with = "ca")]
    insecure: bool,

    /// Name to verify in the broker's certificate, instead of the host of the URL
    #[arg(long, value_name = "NAME")]
    server_name: Option<String>,

    /// Let clients resume the TLS sessions of others, instead of a full handshake for each
    /// connection
    #[arg(long)]
    tls_resume: bool,
}

/// The transport of MQTT packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TransportArgument {
    /// TCP
    Tcp,
    /// TLS
    Tls,
    /// WebSocket
    Ws,
    /// WebSocket over TLS
    Wss,
}

impl TransportArguments {
    /// The scheme of a broker that the run starts.
    pub(super) const fn scheme(&self) -> Scheme {
        match self.transport {
            None | Some(TransportArgument::Tcp) => Scheme::Mqtt,
            Some(TransportArgument::Tls) => Scheme::Mqtts,
            Some(TransportArgument::Ws) => Scheme::Ws,
            Some(TransportArgument::Wss) => Scheme::Wss,
        }
    }

    /// The first flag that would do nothing, and why. `by_tls`: a broker is reached by TLS;
    /// `certified`: one whose certificate the run does not make.
    pub(super) fn useless_flag(
        &self,
        by_tls: bool,
        certified: bool,
    ) -> Option<(&'static str, &'static str)> {
        const ANY: &str = "no broker is reached by TLS";
        const CERTIFIED: &str = "no broker with certificates of its own is reached by TLS";
        [
            (self.ca.is_some(), "--ca", certified, CERTIFIED),
            (self.cert.is_some(), "--cert", certified, CERTIFIED),
            (self.test_ca.is_some(), "--test-ca", certified, CERTIFIED),
            (self.insecure, "--insecure", certified, CERTIFIED),
            (self.server_name.is_some(), "--server-name", certified, CERTIFIED),
            (self.tls_resume, "--tls-resume", by_tls, ANY),
        ]
        .into_iter()
        .find_map(|(given, flag, is_of_use, why)| (given && !is_of_use).then_some((flag, why)))
    }

    /// The scenario's TLS options for a target, overridden by the flags; none for a broker
    /// without TLS.
    ///
    /// # Errors
    /// A sentence, when the CA of --test-ca cannot be used, or sessions cannot be resumed.
    pub(super) fn tls(&self, target: &Target) -> Result<TlsOptions, String> {
        if target.broker.as_ref().is_some_and(|url| !url.scheme.uses_tls()) {
            return Ok(TlsOptions::default());
        }
        let mut tls = target.tls.clone();
        if self.ca.is_some() {
            tls.ca.clone_from(&self.ca);
            tls.insecure = false;
        }
        if self.insecure {
            tls.ca = None;
            tls.insecure = true;
        }
        if self.cert.is_some() {
            tls.cert.clone_from(&self.cert);
            tls.key.clone_from(&self.key);
            tls.test_ca = None;
        }
        if let (Some(cert), Some(key)) = (&self.test_ca, &self.test_ca_key) {
            (tls.cert, tls.key) = (None, None);
            tls.test_ca = Some(TestCa::read(cert, key, self.test_ca_name.clone())?);
        }
        if self.server_name.is_some() {
            tls.server_name.clone_from(&self.server_name);
        }
        tls.resume |= self.tls_resume;
        if tls.resume && tls.is_per_client() {
            return Err(TlsOptions::NOT_RESUMED.to_owned());
        }
        Ok(tls)
    }
}

/// How `url` is reached.
pub(crate) fn transport(url: &BrokerUrl, tls: &TlsOptions) -> Result<Transport, Failure> {
    let client = match url.scheme.uses_tls() {
        false => None,
        true => Some(Arc::new(tls_client(url, tls)?)),
    };
    let socket = url.scheme.is_web_socket().then(|| WsClient {
        host: authority(url),
        path: url.path().to_owned(),
        protocol: Transport::SUBPROTOCOL.to_owned(),
    });
    Ok(match (client, socket) {
        (None, None) => Transport::Tcp,
        (Some(client), None) => Transport::Tls(client),
        (None, Some(socket)) => Transport::Ws(socket),
        (Some(client), Some(socket)) => Transport::Wss(client, socket),
    })
}

fn tls_client(url: &BrokerUrl, tls: &TlsOptions) -> Result<TlsClient, Failure> {
    let (cert, key) = tls.shared_certificate().unzip();
    let settings = TlsClientSettings {
        ca: tls.ca.clone(),
        cert,
        key,
        insecure: tls.insecure,
        server_name: tls.server_name.clone().unwrap_or_else(|| url.host.clone()),
        alpn: tls.alpn.clone(),
        full_handshakes: !tls.resume,
    };
    TlsClient::new(&settings)
        .map_err(|error| Failure::new(exit::INVALID_CONFIG, format!("{url}: {error}")))
}

/// Host and port as an HTTP request names them: without the port that goes without saying.
fn authority(url: &BrokerUrl) -> String {
    let host = match url.host.contains(':') {
        true => format!("[{}]", url.host),
        false => url.host.clone(),
    };
    match url.port == url.scheme.default_port() {
        true => host,
        false => format!("{host}:{}", url.port),
    }
}

#[cfg(test)]
mod tests {
    use tacho_scenario::ProtocolVersion;

    use super::*;

    #[test]
    fn requests_name_the_host_as_browsers_do() {
        for (url, host) in [
            ("ws://a", "a"),
            ("ws://a:443", "a:443"),
            ("wss://a:443", "a"),
            ("wss://[::1]:8084/x", "[::1]:8084"),
        ] {
            assert_eq!(authority(&BrokerUrl::parse(url).expect(url)), host);
        }
    }

    #[test]
    fn flags_win_over_the_scenario() {
        let scenario = TlsOptions {
            ca: Some("theirs.pem".into()),
            server_name: Some("name".into()),
            alpn: vec!["mqtt".into()],
            ..TlsOptions::default()
        };
        let target = |broker: &str, tls: &TlsOptions| Target {
            broker: Some(BrokerUrl::parse(broker).expect(broker)),
            version: ProtocolVersion::default(),
            tls: tls.clone(),
            kills: 0,
        };
        let insecure = TransportArguments { insecure: true, ..TransportArguments::default() };
        let merged = insecure.tls(&target("mqtts://a", &scenario)).expect("merges");
        assert!(merged.insecure && merged.ca.is_none());
        assert_eq!((&merged.server_name, &merged.alpn), (&scenario.server_name, &scenario.alpn));
        let ca = TransportArguments { ca: Some("mine".into()), ..TransportArguments::default() };
        let trusting = TlsOptions { insecure: true, ..TlsOptions::default() };
        let merged = ca.tls(&target("wss://a", &trusting)).expect("merges");
        assert!(!merged.insecure);
        assert_eq!(merged.ca, Some("mine".into()));
        assert!(ca.tls(&target("mqtt://a", &scenario)).expect("merges").is_default());
        let resuming = TransportArguments { tls_resume: true, ..TransportArguments::default() };
        assert!(resuming.tls(&target("mqtts://a", &scenario)).expect("merges").resume);
        let own = Template::parse("{{i}}.pem").expect("a template");
        let own = TlsOptions { cert: Some(own.clone()), key: Some(own), ..TlsOptions::default() };
        let error = resuming.tls(&target("mqtts://a", &own)).expect_err("cannot be");
        assert_eq!(error, TlsOptions::NOT_RESUMED);
    }
}
