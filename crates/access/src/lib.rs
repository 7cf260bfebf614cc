//! Access control: who may log in, and what each client may publish, subscribe to and receive.
//!
//! - [`Users`]: a password file in the format of mosquitto, with the hashes of all its versions.
//! - [`StoredPassword`]: one hash; made, parsed and verified in constant time.
//! - [`emqx_users`]: users of EMQX, with their hashes.
//! - [`Remembered`]: logins that were verified a short while ago, as HMACs.
//! - [`ScramExchange`] and [`ScramClient`]: SCRAM, the two sides of an exchange.
//! - [`TokenVerifier`]: JSON Web Tokens, with the keys that they are verified with; [`TokenSigner`]
//!   makes them.
//! - [`LoginFields`], [`BackendAnswer`]: what a backend behind HTTP is sent about a client, and its
//!   answer.
//! - [`CertificateName`]: the user that a client's certificate names.
//! - [`ClientRules`]: what one client may do, by the rules of its token and the broker's, and the
//!   exact decision whether every topic of a filter may be read.
//! - [`AccessList`]: the rules of a broker: a [`RuleSet`], from a rules file in TOML, or an
//!   [`Acl`], in the format of mosquitto and evaluated as mosquitto does.
//! - [`Bans`]: addresses, client identifiers and users that may not connect.
//! - [`AddressRange`]: addresses that begin with the same bits.
//! - [`Attributes`]: what a login says of its client, for rules to ask.
//!
//! Nothing here knows sockets, sessions or time; nothing recurses, and the work of every call is
//! bounded. Parsing takes untrusted text: it never panics, and errors name file and line.

mod acl;
mod address;
mod attributes;
mod backend;
mod bans;
mod certificate;
mod client_rules;
mod covers;
mod decision;
mod emqx;
mod ends;
mod explain;
mod file;
mod hash;
mod jwt;
mod kinds;
mod list;
mod queue_policy;
mod remembered;
mod rules;
mod scram;
mod template;
mod toml_text;
mod users;

pub use acl::Acl;
pub use address::AddressRange;
pub use attributes::Attributes;
pub use backend::{
    AnswerError, BackendAnswer, FieldError, FieldPlace, FilledRequest, LoginFields,
    RememberedAnswers, RequestClient, UnknownPlaceholder,
};
pub use bans::{Ban, BanEntry, BannedThing, Bans};
pub use certificate::{CertificateError, CertificateName, certificate_end_s, certificate_of_file};
pub use client_rules::ClientRules;
pub use covers::{Coverage, STEPS_MAX, Steps};
pub use decision::{Access, Cause, Decision};
pub use emqx::{EmqxHash, EmqxUser, UnknownHash, emqx_users};
pub use explain::{AccessQuestion, AskedAction, ExplainedRules, Explanation, RulesFile};
pub use file::{FILE_BYTES_MAX, FileError, read_text};
pub use hash::{
    DigestKind, HashError, Memory, NoRandomness, SCRAM_ITERATIONS, SCRAM_ITERATIONS_ALLOWED,
    SaltPlace, Scheme, ScramHash, StoredPassword, saslprepared,
};
pub use jwt::{
    SignError, TokenAcl, TokenClaims, TokenClient, TokenError, TokenRules, TokenSigner,
    TokenVerifier, VerifiedToken, is_claim_template, looks_like_token,
};
pub use kinds::{PublishKind, PublishKinds, SubscriptionKind};
pub use list::AccessList;
pub use queue_policy::QueuePolicy;
pub use remembered::{ProcessKey, Proof, Remembered};
pub use rules::{ClientLimits, Exceeded, PublishExcess, PublishRate, PublishRules, RuleSet};
pub use scram::{
    SaltedPassword, ScramClient, ScramError, ScramExchange, ScramSuccess, ServerProof,
};
pub use template::{Origin, Who};
pub use users::{NameError, Users, check_name, delete_user, hash_plain, set_user, set_users};
