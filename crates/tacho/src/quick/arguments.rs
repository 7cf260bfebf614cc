//! The broker and the client, as `pub` and `sub` are told about them.

use std::net::ToSocketAddrs as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use tacho_client::{ClientSettings, Message, MessageProperties};
use tacho_codec::{QoS, Version};
use tacho_scenario::{BrokerUrl, Password, Template, TlsOptions};

use super::invalid;
use super::properties::PropertyArguments;
use crate::exit::{self, Failure};
use crate::profile::{self, Profile, TARGET};
use crate::run::transport;
use crate::signals;

/// The largest packet that the broker may send: what MQTT can announce.
const PACKET_BYTES_MAX: u32 = 268_435_460;

/// The broker and the client.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Connection")]
pub(crate) struct ConnectionArguments {
    /// Host of the broker. Default: localhost
    #[arg(short = 'h', long, value_name = "HOST")]
    host: Option<String>,

    /// Port of the broker; by default 1883, with TLS 8883, with WebSocket 80 and 443
    #[arg(short, long, value_name = "PORT")]
    port: Option<u16>,

    /// The broker as a URL, mqtt://HOST:PORT, mqtts://, ws:// or wss://, or as @NAME in
    /// ~/.config/tacho/targets.toml. Default: TACHO_TARGET
    #[arg(short = 'L', long = "url", visible_alias = "broker", value_name = "URL",
          conflicts_with_all = ["host", "port"], value_parser = Profile::parse)]
    broker: Option<Profile>,

    /// User name. Default: TACHO_USERNAME
    #[arg(short, long, value_name = "USER")]
    username: Option<String>,

    /// Password, which other users of this machine can see. Prefer --password-file, TACHO_PASSWORD
    #[arg(short = 'P', long = "pw", value_name = "PASSWORD")]
    password: Option<String>,

    /// File with the password and nothing else
    #[arg(long, value_name = "FILE", conflicts_with = "password")]
    password_file: Option<PathBuf>,

    /// Client identifier; by default one that nothing else uses
    #[arg(short, long, value_name = "ID", conflicts_with = "id_prefix")]
    id: Option<String>,

    /// Prefix of the default client identifier
    #[arg(short = 'I', long, value_name = "TEXT")]
    id_prefix: Option<String>,

    /// Protocol version: 5, 311 or 31, also 3.1.1, 3.1, mqttv5, mqttv311 and mqttv31
    #[arg(short = 'V', long, value_name = "VERSION", default_value = "5", value_parser = version)]
    protocol_version: Version,

    /// Keep-alive in seconds; 0 is off
    #[arg(short, long, value_name = "SECONDS", default_value_t = 60)]
    keepalive: u16,

    /// Resume the session that the broker has of this client identifier, and leave it there
    #[arg(short = 'c', long, visible_alias = "disable-clean-session", requires = "id")]
    resume: bool,

    /// Seconds that the session outlives the connection; MQTT 5.0. By default 0, with --resume for
    /// ever
    #[arg(short = 'x', long, value_name = "SECONDS")]
    session_expiry_interval: Option<u32>,

    /// Seconds that connecting may take
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3600))]
    connect_timeout: u64,

    /// Use TLS
    #[arg(long)]
    tls: bool,

    /// Use WebSocket
    #[arg(long)]
    ws: bool,

    /// Certificates to trust, instead of the system's (PEM); means --tls
    #[arg(long, visible_alias = "ca", value_name = "FILE")]
    cafile: Option<PathBuf>,

    /// Client certificate with its chain (PEM); means --tls
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,

    /// Private key of the client certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,

    /// Do not verify the broker's certificate; means --tls
    #[arg(long, conflicts_with = "cafile")]
    insecure: bool,

    /// Topic of a will, which the broker publishes when the connection breaks
    #[arg(long, value_name = "TOPIC")]
    will_topic: Option<String>,

    /// Payload of the will
    #[arg(long, value_name = "TEXT", requires = "will_topic")]
    will_payload: Option<String>,

    /// QoS of the will
    #[arg(long, value_name = "QOS", requires = "will_topic", default_value = "0", value_parser = qos)]
    will_qos: QoS,

    /// Keep the will for later subscribers
    #[arg(long, requires = "will_topic")]
    will_retain: bool,

    /// No messages about the connection
    #[arg(long)]
    pub(super) quiet: bool,
}

/// Reads `0`, `1` or `2`.
pub(super) fn qos(text: &str) -> Result<QoS, String> {
    match text {
        "0" => Ok(QoS::AtMostOnce),
        "1" => Ok(QoS::AtLeastOnce),
        "2" => Ok(QoS::ExactlyOnce),
        _ => Err("the QoS is 0, 1 or 2".to_owned()),
    }
}

fn version(text: &str) -> Result<Version, String> {
    match text.trim_start_matches("mqttv").trim_start_matches("mqtt") {
        "5" | "5.0" => Ok(Version::V5),
        "311" | "3.1.1" | "4" => Ok(Version::V311),
        "31" | "3.1" | "3" => Ok(Version::V31),
        _ => Err("versions are 5, 311 and 31".to_owned()),
    }
}

impl ConnectionArguments {
    /// The client that they describe.
    pub(super) fn settings(
        &self,
        properties: &PropertyArguments,
    ) -> Result<ClientSettings, Failure> {
        let own = properties.of_connect()?;
        let is_v5 = self.protocol_version.is_v5();
        if !is_v5 && (self.session_expiry_interval.is_some() || properties.has_any()) {
            return Err(invalid("properties and the session expiry interval need MQTT 5.0 (-V 5)"));
        }
        let Profile { url, username, password, tls } = self.broker()?;
        let filter = self.filter(&url, tls)?;
        let addresses = (url.host.as_str(), url.port).to_socket_addrs().map_err(|error| {
            let sentence = format!("cannot find the host '{}': {error}", url.host);
            Failure::new(exit::TARGET_UNREACHABLE, sentence)
        })?;
        let expiry_s = match (self.session_expiry_interval, own.session_expiry_s) {
            (Some(_), Some(_)) => {
                return Err(invalid("the session expiry interval is given twice: by -x and by -D"));
            }
            (one, other) => one.or(other).or_else(|| self.resume.then_some(u32::MAX)),
        };
        Ok(ClientSettings {
            addresses: addresses.collect(),
            filter,
            version: self.protocol_version,
            client_id: self.client_id(),
            clean_start: !self.resume,
            session_expiry_s: expiry_s.filter(|_| is_v5),
            keep_alive_s: self.keepalive,
            receive_maximum: own.receive_maximum,
            username: self
                .username
                .clone()
                .or(username)
                .or_else(|| std::env::var("TACHO_USERNAME").ok()),
            password: self.password(password)?,
            will: self.will(properties)?,
            will_delay_s: properties.will_delay_s()?,
            user_properties: own.user_properties,
            packet_bytes_max: PACKET_BYTES_MAX,
            timeout: Duration::from_secs(self.connect_timeout),
            stop: signals::stop_flag()?,
        })
    }

    /// Whether MQTT 5.0 is spoken.
    pub(super) fn is_v5(&self) -> bool {
        self.protocol_version.is_v5()
    }

    fn broker(&self) -> Result<Profile, Failure> {
        if let Some(broker) = &self.broker {
            return Ok(broker.clone());
        }
        if let (None, None, Ok(text)) = (&self.host, self.port, std::env::var(TARGET)) {
            return Profile::parse(&text).map_err(|error| invalid(&format!("{TARGET}: {error}")));
        }
        let kind = (self.wants_tls(), self.ws);
        Ok(profile::address(self.host.as_deref(), self.port, kind).into())
    }

    const fn wants_tls(&self) -> bool {
        self.tls || self.cafile.is_some() || self.cert.is_some() || self.insecure
    }

    /// How the broker is reached; flags win over the options of a broker with a name.
    fn filter(
        &self,
        url: &BrokerUrl,
        mut tls: TlsOptions,
    ) -> Result<tacho_client::FilterSource, Failure> {
        if self.wants_tls() && !url.scheme.uses_tls() {
            return Err(invalid(&format!("{url} is without TLS: write mqtts:// or wss://")));
        }
        if self.ws && !url.scheme.is_web_socket() {
            return Err(invalid(&format!("{url} is no WebSocket: write ws:// or wss://")));
        }
        let named = |path: &PathBuf| Template::literal(path.to_string_lossy());
        if self.cafile.is_some() || self.insecure {
            (tls.ca, tls.insecure) = (self.cafile.clone(), self.insecure);
        }
        if self.cert.is_some() {
            (tls.cert, tls.key) = (self.cert.as_ref().map(named), self.key.as_ref().map(named));
        }
        let transport = transport(url, &tls)?;
        Ok(Arc::new(move || transport.filter()))
    }

    fn client_id(&self) -> String {
        if let Some(id) = &self.id {
            return id.clone();
        }
        let prefix = self.id_prefix.as_deref().unwrap_or("tacho-");
        let nanos = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos();
        // MQTT 3.1 allows 23 bytes.
        format!("{prefix}{:x}-{:x}", std::process::id(), nanos as u32)
    }

    /// The password; that of a broker with a name comes before that of the environment.
    fn password(&self, named: Option<Password>) -> Result<Option<Vec<u8>>, Failure> {
        let bytes = |password: &Password| password.reveal().map(|text| text.as_bytes().to_vec());
        if let Some(file) = &self.password_file {
            return Password::read(file)
                .map(|password| bytes(&password))
                .map_err(|why| invalid(&why));
        }
        if let Some(password) = &self.password {
            if !self.quiet {
                eprintln!(
                    "other users of this machine can see the password of -P: prefer --password-file"
                );
            }
            return Ok(Some(password.clone().into_bytes()));
        }
        let password = named.unwrap_or_else(|| Password::in_environment(Password::VARIABLE));
        Ok(bytes(&password))
    }

    fn will(&self, properties: &PropertyArguments) -> Result<Option<Message>, Failure> {
        let properties: MessageProperties = properties.of_will()?;
        let Some(topic) = &self.will_topic else {
            return match properties.is_empty() {
                true => Ok(None),
                false => Err(invalid("-D will needs --will-topic")),
            };
        };
        check_topic(topic)?;
        Ok(Some(Message {
            topic: topic.clone(),
            payload: self.will_payload.clone().unwrap_or_default().into_bytes(),
            qos: self.will_qos,
            retain: self.will_retain,
            properties,
        }))
    }
}

/// Checks a topic that is published to.
pub(super) fn check_topic(topic: &str) -> Result<(), Failure> {
    tacho_codec::check_topic_name(topic)
        .map_err(|error| invalid(&format!("'{}' is no topic: {error}", topic.escape_debug())))
}
