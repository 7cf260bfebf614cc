//! A checked scenario. Its serialised form is a scenario file again.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use tacho_load::{ScramHash, TokenClaims};

use super::action::Action;
use super::broker_url::BrokerUrl;
use super::data::Table;
use super::headline::HeadlineKind;
use super::life::{DeclaredLoss, Disconnect, Offline, Reconnect, Will};
use super::login::Login;
use super::password::Password;
use super::quantity::{PerSecond, TimeSpan};
use super::rows::Rows;
use super::source_address::SourceAddresses;
use super::stream::{Model, Publish};
use super::template::{ClientPlace, Template};
use super::tls::TlsOptions;
use super::token::Token;
use super::vars::VarValue;
use crate::threshold::Thresholds;

/// A scenario, checked and with all variables replaced.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Scenario {
    /// Short name; part of the run directory's name.
    pub name: String,
    /// One sentence.
    pub description: String,
    /// The same in Chinese; empty where there is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description_zh: String,
    /// Seed of payload fill and random phases.
    pub seed: u64,
    /// Virtual load machines that every group is divided over: `{{machine}}` in templates.
    pub machines: u32,
    /// The figures that it is for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub headlines: Vec<HeadlineKind>,
    /// The values that the variables had. They have been replaced already and are kept for the
    /// record.
    pub vars: BTreeMap<String, VarValue>,
    /// The broker of the groups that name none.
    pub target: Target,
    /// Further brokers by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub targets: BTreeMap<String, Target>,
    /// How these brokers pass messages on to each other.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bridges: Vec<Bridge>,
    /// The generator.
    pub load: LoadOptions,
    /// How long the phases are.
    pub phases: Phases,
    /// Conditions for the run to pass.
    pub thresholds: Thresholds,
    /// Timed actions in the measured phase.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<Action>,
    /// Groups of clients by name.
    pub groups: BTreeMap<String, Group>,
    /// Notes about its origin for readers of its results; none for a file.
    #[serde(skip)]
    pub notes: Vec<String>,
}

/// Which broker, in which protocol version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Target {
    /// Where it is; without it the run starts a broker of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broker: Option<BrokerUrl>,
    /// Protocol version of all clients.
    pub version: ProtocolVersion,
    /// How connections are encrypted.
    #[serde(skip_serializing_if = "TlsOptions::is_default")]
    pub tls: TlsOptions,
    /// How often the run kills it and starts it again.
    #[serde(skip_serializing_if = "is_zero")]
    pub kills: u32,
}

/// Protocol version of the clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum ProtocolVersion {
    /// MQTT 3.1.
    #[serde(rename = "3.1")]
    V31,
    /// MQTT 3.1.1.
    #[serde(rename = "3.1.1")]
    V311,
    /// MQTT 5.0.
    #[default]
    #[serde(rename = "5")]
    V5,
}

/// Messages that one broker under test passes on to another one, by its own configuration: so much
/// must be known to derive the expected receivers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Bridge {
    /// The broker that passes them on: a name of `[targets]`.
    pub from: String,
    /// The broker that they arrive at.
    pub to: String,
    /// Which topics.
    pub filter: String,
    /// Prefix to remove from the topic.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub strip: String,
    /// Prefix to add afterwards.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub prefix: String,
    /// Connections between the two, where they are Tacho's own and the run starts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connections: Option<u16>,
}

/// How the generator works.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LoadOptions {
    /// Generator threads; the runner chooses when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<u16>,
    /// How threads wait for the next due message.
    pub timing: Timing,
    /// Addresses that clients connect from.
    #[serde(skip_serializing_if = "SourceAddresses::is_empty")]
    pub source_addresses: SourceAddresses,
}

/// How generator threads wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Timing {
    /// As `sleep`, and spin within a budget where every thread has a core of its own.
    #[default]
    Auto,
    /// Sleep until the next message is due.
    Sleep,
    /// Never sleep; takes a core per thread.
    Spin,
    /// Handle events in batches of half a millisecond.
    Batch,
}

/// Lengths of the phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Phases {
    /// Clients without CONNACK or SUBACK after this are given up.
    pub connect_timeout: TimeSpan,
    /// Send one message over every path before the load begins.
    pub ready_probe: bool,
    /// Load that is not measured.
    pub warmup: TimeSpan,
    /// Load that is measured.
    pub measure: TimeSpan,
    /// Longest wait for outstanding messages afterwards.
    pub drain: TimeSpan,
}

/// Clients that do the same.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Group {
    /// How many.
    pub clients: u32,
    /// Client identifiers.
    pub client_id: Template,
    /// The name of the broker they connect to; `None` is the scenario's default one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Its protocol version; `None` is the broker's one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<ProtocolVersion>,
    /// A table with a row per client: `client_id`, `username`, `password`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credentials: Option<Table>,
    /// How they are dealt out.
    #[serde(skip_serializing_if = "Rows::is_default")]
    pub rows: Rows,
    /// QoS 1 and 2 messages that a client may have unacknowledged.
    pub inflight: u16,
    /// Messages of a client that may wait for that window before further ones are dropped.
    pub waiting: u32,
    /// Losses of messages to them that are no violation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub losses: Option<DeclaredLoss>,
    /// How they connect.
    pub connect: Connect,
    /// How they leave at the end.
    #[serde(skip_serializing_if = "Disconnect::is_default")]
    pub disconnect: Disconnect,
    /// The will of each of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub will: Option<Will>,
    /// They leave during the load and come back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offline: Option<Offline>,
    /// They leave before the load begins and come back when it is over.
    #[serde(skip_serializing_if = "is_false")]
    pub absent: bool,
    /// They answer requests.
    #[serde(skip_serializing_if = "is_false")]
    pub answers: bool,
    /// Reconnection after an unexpected end of a connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reconnect: Option<Reconnect>,
    /// They log in again and again, and do nothing else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub login: Option<Login>,
    /// Publications of each client.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub publish: Vec<Publish>,
    /// Subscriptions of each client.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subscribe: Vec<Subscribe>,
}

/// How clients connect.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Connect {
    /// Connections per second of the group; `None` with a ramp of zero: all at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<PerSecond>,
    /// Or: all of the group connect within this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ramp: Option<TimeSpan>,
    /// Clean start (5.0) or clean session (3.x).
    pub clean_start: bool,
    /// How long the session outlives the connection (5.0).
    pub session_expiry: TimeSpan,
    /// Keep-alive; zero turns it off.
    pub keep_alive: TimeSpan,
    /// Largest packet that the clients accept, in bytes; announced in CONNECT (5.0).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maximum_packet_size: Option<u32>,
    /// User name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username: Option<Template>,
    /// Password; a reference to it where the scenario is written.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub password: Option<Password>,
    /// They log in by SCRAM, with user name and password.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "scram_name")]
    pub scram: Option<ScramHash>,
    /// They log in by a token of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<Token>,
}

/// One subscription of each client of a group.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Subscribe {
    /// Topic filter; `$share/group/filter` for a shared one.
    pub filter: Template,
    /// Maximum QoS asked for.
    pub qos: u8,
    /// Do not send the client's own messages back (5.0).
    #[serde(skip_serializing_if = "is_false")]
    pub no_local: bool,
    /// Which retained messages the broker sends (5.0): 0 all, 1 those of new subscriptions, 2 none.
    #[serde(skip_serializing_if = "is_zero")]
    pub retain_handling: u8,
}

fn scram_name<S: Serializer>(hash: &Option<ScramHash>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(hash.map_or("", ScramHash::name))
}

fn is_false(flag: &bool) -> bool {
    !flag
}

fn is_zero<N: Default + PartialEq>(number: &N) -> bool {
    *number == N::default()
}

impl Group {
    /// The client identifier of one of its clients.
    pub fn client_id(&self, place: ClientPlace) -> String {
        self.credential(place, "client_id").unwrap_or_else(|| self.client_id.expand_at(place))
    }

    /// The user name of one of its clients.
    pub fn username(&self, place: ClientPlace) -> Option<String> {
        let given = || self.connect.username.as_ref().map(|text| text.expand_at(place));
        self.credential(place, "username").or_else(given)
    }

    /// The password of one of its clients.
    pub fn password(&self, place: ClientPlace) -> Option<String> {
        let given = || self.connect.password.as_ref()?.expand_at(place);
        self.credential(place, "password").or_else(given)
    }

    /// What the tokens of one of its clients claim, if it has any.
    pub fn token_claims(&self, place: ClientPlace) -> Option<TokenClaims> {
        let subject = || self.username(place).unwrap_or_else(|| self.client_id(place));
        self.connect.token.as_ref().map(|token| token.claims_of(place, subject()))
    }

    fn credential(&self, place: ClientPlace, column: &str) -> Option<String> {
        let table = self.credentials.as_ref()?;
        let row = self.rows.row_for(place, table.rows.len() as u64);
        table.cell(row, column).map(str::to_owned)
    }
}

impl Scenario {
    /// The name of the broker of `[target]`.
    pub const DEFAULT_TARGET: &'static str = "";

    /// Clients of all groups.
    pub fn clients(&self) -> u64 {
        self.groups.values().map(|group| u64::from(group.clients)).sum()
    }

    /// Do sessions of the group outlive their connections?
    pub fn has_persistent_sessions(&self, group: &Group) -> bool {
        let connect = &group.connect;
        !connect.session_expiry.0.is_zero()
            || !connect.clean_start && self.version_of(group) != ProtocolVersion::V5
    }

    /// The brokers that clients connect to, by name, in order of names; the default one first,
    /// under the name [`Scenario::DEFAULT_TARGET`].
    pub fn targets_in_use(&self) -> Vec<(&str, &Target)> {
        let used = |name: Option<&str>| {
            self.groups.values().any(|group| group.clients > 0 && group.target.as_deref() == name)
        };
        let named = self.targets.iter().filter(|(name, _)| used(Some(name.as_str())));
        used(None)
            .then_some((Self::DEFAULT_TARGET, &self.target))
            .into_iter()
            .chain(named.map(|(name, target)| (name.as_str(), target)))
            .collect()
    }

    /// Do all clients connect to brokers that have names?
    pub fn has_only_named_targets(&self) -> bool {
        self.groups.values().all(|group| group.clients == 0 || group.target.is_some())
    }

    /// Forgets the addresses of bridged brokers where two of them have the same one, as plans have
    /// that leave addresses to the command line: no two brokers are at one address. `is_given` says
    /// whether the command line has the address of a broker.
    pub fn forget_shared_addresses(&mut self, is_given: impl Fn(&str) -> bool) {
        if self.bridges.is_empty() {
            return;
        }
        let open: Vec<String> = self
            .targets_in_use()
            .into_iter()
            .map(|(name, _)| name.to_owned())
            .filter(|name| !name.is_empty() && !is_given(name))
            .collect();
        let address = |scenario: &Self, name: &str| scenario.targets.get(name)?.broker.clone();
        let first = open.iter().find_map(|name| {
            let url = address(self, name)?;
            open.iter()
                .any(|other| other != name && address(self, other).as_ref() == Some(&url))
                .then_some(url)
        });
        let Some(url) = first else { return };
        for name in &open {
            if let Some(target) = self.targets.get_mut(name)
                && target.broker.as_ref() == Some(&url)
            {
                target.broker = None;
            }
        }
        let arguments: Vec<_> = open.iter().map(|name| format!("--broker {name}=URL")).collect();
        self.notes.push(format!(
            "The brokers {} have the same address, {url}, which says that their addresses are not \
             known: the run starts Tacho's own brokers in their place and bridges them. Others are \
             named by {}.",
            open.join(" and "),
            arguments.join(" ")
        ));
    }

    /// The broker of a group.
    pub fn target_of(&self, group: &Group) -> (&str, &Target) {
        // Invariant: a checked scenario names only targets that it has.
        let named = group.target.as_deref().and_then(|name| self.targets.get_key_value(name));
        named.map_or((Self::DEFAULT_TARGET, &self.target), |(name, target)| (name, target))
    }

    /// The protocol version of a group.
    pub fn version_of(&self, group: &Group) -> ProtocolVersion {
        group.version.unwrap_or_else(|| self.target_of(group).1.version)
    }

    /// Sets what is given of the credentials of the clients of a broker. A row of a group's own
    /// table wins over them.
    pub fn set_credentials(
        &mut self,
        target: &str,
        username: Option<&Template>,
        password: Option<&Password>,
    ) {
        for group in self.groups.values_mut() {
            if group.target.as_deref().unwrap_or(Self::DEFAULT_TARGET) != target {
                continue;
            }
            if let Some(username) = username {
                group.connect.username = Some(username.clone());
            }
            if let Some(password) = password {
                group.connect.password = Some(password.clone());
            }
        }
    }

    /// Gives these credentials to the clients whose groups have no table with credentials, where
    /// they have no user name or no password.
    pub fn complete_credentials(
        &mut self,
        username: Option<&Template>,
        password: Option<&Password>,
    ) {
        for group in self.groups.values_mut() {
            let connect = &mut group.connect;
            let missing = connect.username.is_none() || connect.password.is_none();
            if !missing || group.credentials.is_some() {
                continue;
            }
            connect.username = connect.username.take().or_else(|| username.cloned());
            connect.password = connect.password.take().or_else(|| password.cloned());
        }
    }

    /// The first environment variable that has the password of a group, by its name, and is not
    /// set.
    pub fn missing_password(&self) -> Option<(&str, &str)> {
        let loaded = self.groups.iter().filter(|(_, group)| group.clients > 0);
        loaded.into_iter().find_map(|(name, group)| {
            let password = group.connect.password.as_ref()?;
            password.missing_variable().map(|variable| (name.as_str(), variable))
        })
    }

    /// Whether a password stands in its text, and not only a reference to one.
    pub fn has_password_in_text(&self) -> bool {
        let mut passwords =
            self.groups.values().filter_map(|group| group.connect.password.as_ref());
        passwords.any(Password::is_inline)
    }

    /// Makes every publisher closed with `window` messages under way.
    pub fn close(&mut self, window: u32) {
        for publish in self.groups.values_mut().flat_map(|group| &mut group.publish) {
            publish.model = Model::Closed { window };
        }
    }

    /// The scenario as a file that gives the same scenario again, every default spelled out.
    pub fn to_toml(&self) -> String {
        // Invariant: every field has a TOML form; maps have string keys.
        toml::to_string(self).unwrap_or_else(|error| format!("# not representable: {error}\n"))
    }
}
