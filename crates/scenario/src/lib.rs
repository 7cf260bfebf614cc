//! Scenarios: what clients do, from files in TOML, JMeter plans and names of the benchmark grammar.
//!
//! A scenario file goes through four steps, each with errors that point at the line:
//!
//! 1. the TOML is parsed,
//! 2. `[vars]` and `--var` are applied: every `{{name}}` is replaced ([`VarValue`]),
//! 3. names and types are checked,
//! 4. values are judged ([`Limits`] says what the machine allows), giving a [`Scenario`].
//!
//! Strings that differ from client to client keep `{{i}}` and `{{machine}}` as a [`Template`].

mod action;
mod adjust;
mod benchmark_name;
mod broker_url;
mod builtin;
mod check;
mod data;
mod draw;
mod error;
pub mod format;
mod headline;
mod identity;
pub mod jmx;
mod jmx_options;
mod life;
mod limits;
mod load;
mod login;
mod needs;
mod parse;
mod password;
mod pattern;
pub mod published;
mod quantity;
mod raw;
mod reference;
mod rows;
mod schedule;
mod schema;
mod source_address;
pub mod steps;
mod stream;
pub mod suite;
mod template;
pub mod threshold;
mod tls;
mod token;
mod trace;
mod types;
mod variable_words;
mod variables;
mod vars;
mod virtual_users;

pub use action::{Action, ActionKind};
pub use adjust::Adjustment;
pub use benchmark_name::{BENCHMARK_GRAMMAR, BenchmarkName};
pub use broker_url::{BrokerUrl, Scheme};
pub use builtin::{BUILTIN, Builtin};
pub use data::{DataFile, Table};
pub use error::{ScenarioError, SourceText};
pub use headline::HeadlineKind;
pub use identity::{ClientIds, CredentialFile};
pub use jmx_options::{JmxOptions, Pacing, PayloadStyle, PlanLoops, RowDivision};
pub use life::{DeclaredLoss, Disconnect, Offline, Reconnect, Will};
pub use limits::{DESCRIPTORS_RESERVED, Limits, PAYLOAD_BYTES_MAX, PAYLOAD_BYTES_MIN, Shortage};
pub use login::Login;
pub use needs::{MESSAGES_PER_CORE, MESSAGES_PER_CORE_QOS0, Needs};
pub use password::Password;
pub use quantity::{PerSecond, TimeSpan};
pub use reference::reference;
pub use rows::Rows;
pub use schedule::Scheduled;
pub use schema::{documented_keys, schema};
pub use source_address::SourceAddresses;
pub use stream::{Arrivals, Model, Payload, PhasePolicy, Publish, Rate, RateFrom, Trace};
pub use template::{ClientPlace, Template};
pub use tls::{Certificates, TestCa, TlsOptions};
pub use token::{Claim, Token, TokenKey, TokenPlace};
pub use types::{
    Bridge, Connect, Group, LoadOptions, Phases, ProtocolVersion, Scenario, Subscribe, Target,
    Timing,
};
pub use variables::{ScenarioVariable, VariableKind};
pub use vars::VarValue;
