//! What a backend is sent about a client: fields whose texts have placeholders.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value};

use crate::remembered::{ProcessKey, Proof};

/// All but the characters that RFC 3986, 2.3 calls unreserved.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A client that logs in, as far as a backend may be told.
#[derive(Clone, Copy)]
pub struct RequestClient<'a> {
    /// The user name of CONNECT.
    pub user: &'a str,
    /// The client identifier.
    pub client_id: &'a str,
    /// The password of CONNECT.
    pub password: Option<&'a str>,
    /// Where it has connected from.
    pub address: Option<IpAddr>,
    /// The configured address of the listener that it has connected to.
    pub listener: Option<SocketAddr>,
    /// The common name in its certificate.
    pub certificate_name: Option<&'a str>,
    /// The whole subject of its certificate.
    pub certificate_subject: Option<&'a str>,
}

/// What a placeholder stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClientValue {
    User,
    ClientId,
    Password,
    Address,
    Listener,
    CertificateName,
    CertificateSubject,
}

impl ClientValue {
    const ALL: [Self; 7] = [
        Self::User,
        Self::ClientId,
        Self::Password,
        Self::Address,
        Self::Listener,
        Self::CertificateName,
        Self::CertificateSubject,
    ];

    /// Behind `%`.
    const fn letter(self) -> char {
        match self {
            Self::User => 'u',
            Self::ClientId => 'c',
            Self::Password => 'P',
            Self::Address => 'a',
            Self::Listener => 'l',
            Self::CertificateName => 'n',
            Self::CertificateSubject => 's',
        }
    }

    /// `None` where the client has no such value.
    fn of(self, client: &RequestClient<'_>) -> Option<String> {
        match self {
            Self::User => Some(client.user.to_owned()),
            Self::ClientId => Some(client.client_id.to_owned()),
            Self::Password => client.password.map(str::to_owned),
            Self::Address => client.address.map(|address| address.to_canonical().to_string()),
            Self::Listener => client.listener.map(|address| address.to_string()),
            Self::CertificateName => client.certificate_name.map(str::to_owned),
            Self::CertificateSubject => client.certificate_subject.map(str::to_owned),
        }
    }
}

/// The text of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FieldText(Box<[FieldPiece]>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum FieldPiece {
    Text(Box<str>),
    Value(ClientValue),
}

/// `%` begins something else than a placeholder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`%` begins %u, %c, %P, %a, %l, %n, %s or %%")]
pub struct UnknownPlaceholder;

impl FieldText {
    fn parse(text: &str) -> Result<Self, UnknownPlaceholder> {
        let (mut pieces, mut plain) = (Vec::new(), String::new());
        let mut characters = text.chars();
        while let Some(character) = characters.next() {
            if character != '%' {
                plain.push(character);
                continue;
            }
            let letter = characters.next().ok_or(UnknownPlaceholder)?;
            if letter == '%' {
                plain.push('%');
                continue;
            }
            let named = ClientValue::ALL.into_iter().find(|value| value.letter() == letter);
            let value = named.ok_or(UnknownPlaceholder)?;
            if !plain.is_empty() {
                pieces.push(FieldPiece::Text(std::mem::take(&mut plain).into()));
            }
            pieces.push(FieldPiece::Value(value));
        }
        if !plain.is_empty() {
            pieces.push(FieldPiece::Text(plain.into()));
        }
        Ok(Self(pieces.into()))
    }

    fn has(&self, value: ClientValue) -> bool {
        self.0.contains(&FieldPiece::Value(value))
    }

    /// `None` where the client has no value for a placeholder.
    fn fill(&self, client: &RequestClient<'_>) -> Option<String> {
        self.0.iter().try_fold(String::new(), |filled, piece| match piece {
            FieldPiece::Text(text) => Some(filled + text),
            FieldPiece::Value(value) => Some(filled + &value.of(client)?),
        })
    }
}

/// Where the fields of a request stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldPlace {
    /// In the query of the URL, which has to have none yet or end its own with them.
    Query,
    /// In a body of JSON: an object with texts. A value that the client has not is `null`.
    Json,
    /// In a body as HTML forms have it. A field that the client has no value for is left out.
    Form,
}

/// Why fields cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// The text of a field has an unknown placeholder.
    #[error("`{0}`: {why}", why = UnknownPlaceholder)]
    Placeholder(String),
    /// No field has the user name, although an answer counts for it.
    #[error("a field must have `%u`: the user that an answer is about")]
    NoUser,
}

/// The fields that a backend is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginFields {
    fields: Box<[(Box<str>, FieldText)]>,
    place: FieldPlace,
}

/// A request for one client. It may have its password, so that it has no `Debug`.
pub struct FilledRequest {
    /// Behind that of the configuration; empty without fields in the query.
    pub query: String,
    /// Empty with fields in the query.
    pub body: String,
}

impl LoginFields {
    /// Reads fields: names and texts.
    ///
    /// # Errors
    /// A text has an unknown placeholder, or none has the user name.
    pub fn parse(fields: &BTreeMap<String, String>, place: FieldPlace) -> Result<Self, FieldError> {
        let parsed = |(name, text): (&String, &String)| match FieldText::parse(text) {
            Ok(text) => Ok((name.as_str().into(), text)),
            Err(UnknownPlaceholder) => Err(FieldError::Placeholder(name.clone())),
        };
        let fields: Box<[_]> = fields.iter().map(parsed).collect::<Result<_, _>>()?;
        let fields = Self { fields, place };
        if fields.has(ClientValue::User) { Ok(fields) } else { Err(FieldError::NoUser) }
    }

    /// Whether the password is sent.
    pub fn has_password(&self) -> bool {
        self.has(ClientValue::Password)
    }

    /// Whether a name of the client's certificate is sent.
    pub fn has_certificate(&self) -> bool {
        self.has(ClientValue::CertificateName) || self.has(ClientValue::CertificateSubject)
    }

    fn has(&self, value: ClientValue) -> bool {
        self.fields.iter().any(|(_, text)| text.has(value))
    }

    /// Stands for all that is sent about a client.
    pub fn proof(&self, key: &ProcessKey, client: &RequestClient<'_>) -> Proof {
        let sent = ClientValue::ALL.into_iter().filter(|value| self.has(*value));
        key.proof_of_all(sent.map(|value| value.of(client)))
    }

    /// The request for a client.
    pub fn fill(&self, client: &RequestClient<'_>) -> FilledRequest {
        let filled = self.fields.iter().map(|(name, text)| (name, text.fill(client)));
        match self.place {
            FieldPlace::Query => FilledRequest { query: encoded(filled), body: String::new() },
            FieldPlace::Form => FilledRequest { query: String::new(), body: encoded(filled) },
            FieldPlace::Json => {
                let value = |text: Option<String>| text.map_or(Value::Null, Value::String);
                let object: Map<String, Value> =
                    filled.map(|(name, text)| (name.to_string(), value(text))).collect();
                FilledRequest { query: String::new(), body: Value::Object(object).to_string() }
            }
        }
    }
}

fn encoded<'a>(fields: impl Iterator<Item = (&'a Box<str>, Option<String>)>) -> String {
    let pairs = fields.filter_map(|(name, text)| {
        let text = text?;
        let [name, text] = [name, &*text].map(|part| utf8_percent_encode(part, ENCODED));
        Some(format!("{name}={text}"))
    });
    pairs.collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: RequestClient<'static> = RequestClient {
        user: "ann",
        client_id: "c&1",
        password: Some("pa\"ss="),
        address: None,
        listener: None,
        certificate_name: None,
        certificate_subject: None,
    };

    fn fields(pairs: &[(&str, &str)], place: FieldPlace) -> Result<LoginFields, FieldError> {
        let pairs = pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        LoginFields::parse(&pairs.collect(), place)
    }

    fn filled(pairs: &[(&str, &str)], place: FieldPlace, client: &RequestClient<'_>) -> String {
        let FilledRequest { query, body } = fields(pairs, place).expect("valid").fill(client);
        assert!(query.is_empty() || body.is_empty());
        query + &body
    }

    #[test]
    fn values_are_encoded_so_that_they_are_no_other_fields() {
        let pairs = [("u", "%u"), ("p", "%P"), ("id", "dev-%c-100%%")];
        let json = filled(&pairs, FieldPlace::Json, &CLIENT);
        assert_eq!(json, r#"{"id":"dev-c&1-100%","p":"pa\"ss=","u":"ann"}"#);
        let encoded = "id=dev-c%261-100%25&p=pa%22ss%3D&u=ann";
        assert_eq!(filled(&pairs, FieldPlace::Form, &CLIENT), encoded);
        assert_eq!(filled(&pairs, FieldPlace::Query, &CLIENT), encoded);
        // A value is no template.
        let odd = RequestClient { user: "%P", client_id: "\u{e9}\n", ..CLIENT };
        assert_eq!(filled(&pairs[..1], FieldPlace::Form, &odd), "u=%25P");
        let both = [("u", "%u"), ("id", "%c")];
        assert_eq!(filled(&both, FieldPlace::Form, &odd), "id=%C3%A9%0A&u=%25P");
        assert_eq!(filled(&both, FieldPlace::Json, &odd), "{\"id\":\"\u{e9}\\n\",\"u\":\"%P\"}");
    }

    #[test]
    fn what_a_client_has_not_is_null_or_left_out() {
        let pairs = [("a", "%a"), ("l", "%l"), ("n", "x-%n"), ("s", "%s"), ("u", "%u")];
        let json = filled(&pairs, FieldPlace::Json, &CLIENT);
        assert_eq!(json, r#"{"a":null,"l":null,"n":null,"s":null,"u":"ann"}"#);
        assert_eq!(filled(&pairs, FieldPlace::Form, &CLIENT), "u=ann");
        let known = RequestClient {
            address: Some("::ffff:192.0.2.7".parse().expect("an address")),
            listener: Some("[::1]:1883".parse().expect("an address")),
            certificate_name: Some("pump"),
            certificate_subject: Some("CN=pump,O=x"),
            ..CLIENT
        };
        assert_eq!(
            filled(&pairs, FieldPlace::Json, &known),
            r#"{"a":"192.0.2.7","l":"[::1]:1883","n":"x-pump","s":"CN=pump,O=x","u":"ann"}"#
        );
    }

    #[test]
    fn fields_without_the_user_or_with_unknown_placeholders_are_refused() {
        let refused = |pairs: &[(&str, &str)]| fields(pairs, FieldPlace::Json).expect_err("wrong");
        assert_eq!(refused(&[]), FieldError::NoUser);
        assert_eq!(refused(&[("id", "%c"), ("u", "%%u")]), FieldError::NoUser);
        for text in ["%x", "%", "100%", "%U", "%u%"] {
            assert_eq!(refused(&[("f", text)]), FieldError::Placeholder("f".to_owned()), "{text}");
        }
        let known = fields(&[("u", "%u %s")], FieldPlace::Json).expect("valid");
        assert!(known.has_certificate() && !known.has_password());
    }

    #[test]
    fn a_proof_depends_on_all_that_is_sent_and_on_nothing_else() {
        let key = ProcessKey::new().expect("randomness");
        let pairs = [("u", "%u"), ("p", "%P"), ("n", "%n")];
        let sent = fields(&pairs, FieldPlace::Json).expect("valid");
        let proof = |client: &RequestClient<'_>| sent.proof(&key, client);
        let same = RequestClient { client_id: "other", certificate_subject: Some("x"), ..CLIENT };
        assert!(proof(&CLIENT) == proof(&same));
        for other in [
            RequestClient { user: "an", password: Some("npa\"ss="), ..CLIENT },
            RequestClient { password: None, ..CLIENT },
            RequestClient { password: Some(""), ..CLIENT },
            RequestClient { certificate_name: Some(""), ..CLIENT },
        ] {
            assert!(proof(&CLIENT) != proof(&other));
        }
        assert!(
            proof(&RequestClient { password: None, ..CLIENT })
                != proof(&RequestClient { password: Some(""), ..CLIENT })
        );
    }
}
