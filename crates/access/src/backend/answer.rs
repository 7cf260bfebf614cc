//! What the answer of a backend says of a client, in the form that EMQX has.

use serde_json::{Map, Value};

use crate::attributes::Attributes;
use crate::jwt::TokenAcl;

/// From here on a time is one in milliseconds: as seconds it would be the year 5138.
const MILLISECONDS_FROM: u64 = 100_000_000_000;

/// Keys of EMQX that change who a client is: to leave them out would let in another one.
const UNSUPPORTED: [&str; 2] = ["clientid_override", "zone_override"];

/// What a backend says of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackendAnswer {
    /// It is the user that it says.
    Allow {
        /// What it may do, and its attributes, if the answer says so.
        acl: Option<TokenAcl>,
        /// When that ends, in seconds since 1970; `None`: never.
        expires_unix_s: Option<u64>,
    },
    /// It is not, or may not connect.
    Deny,
    /// It would be, if that had not ended already.
    Expired,
    /// The backend does not know it: others decide.
    Ignore,
}

/// Why an answer cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// It is something else than an object of JSON.
    #[error("the answer is no JSON object")]
    NoObject,
    /// It does not say what it should.
    #[error("`result` of the answer is not \"allow\", \"deny\" or \"ignore\"")]
    Result,
    /// This is not true or false.
    #[error("`is_superuser` of the answer is not true or false")]
    Superuser,
    /// This is no number of seconds.
    #[error("`expire_at` of the answer is no time in seconds since 1970")]
    Expiry,
    /// The rules cannot be used.
    #[error("`acl` of the answer cannot be used: {0}")]
    Acl(String),
    /// The attributes cannot be used.
    #[error("`client_attrs` of the answer cannot be used: {0}")]
    Attributes(String),
    /// It asks for something that there is not.
    #[error("`{0}` of the answer is not supported")]
    Unsupported(&'static str),
}

impl BackendAnswer {
    /// Reads the body of an answer. Unknown keys count nothing.
    ///
    /// # Errors
    /// It cannot be used.
    pub fn parse(body: &[u8], now_unix_s: u64) -> Result<Self, AnswerError> {
        let answer: Map<String, Value> =
            serde_json::from_slice(body).map_err(|_| AnswerError::NoObject)?;
        match answer.get("result").and_then(Value::as_str) {
            Some("allow") => {}
            Some("deny") => return Ok(Self::Deny),
            Some("ignore") => return Ok(Self::Ignore),
            _ => return Err(AnswerError::Result),
        }
        let is_there = |key: &&str| answer.get(*key).is_some_and(|value| !value.is_null());
        if let Some(key) = UNSUPPORTED.into_iter().find(is_there) {
            return Err(AnswerError::Unsupported(key));
        }
        let expires_unix_s = match answer.get("expire_at") {
            None | Some(Value::Null) => None,
            Some(time) => {
                let time = time.as_u64().filter(|time| *time < MILLISECONDS_FROM);
                Some(time.ok_or(AnswerError::Expiry)?)
            }
        };
        let is_superuser = match answer.get("is_superuser") {
            None | Some(Value::Null) => false,
            Some(flag) => flag.as_bool().ok_or(AnswerError::Superuser)?,
        };
        let acl = match answer.get("acl") {
            None | Some(Value::Null) => None,
            Some(claim) => Some(TokenAcl::parse(claim).map_err(AnswerError::Acl)?),
        };
        let attributes = match answer.get("client_attrs") {
            None | Some(Value::Null) => Attributes::NONE,
            Some(object) => Attributes::parse(object).map_err(AnswerError::Attributes)?,
        };
        if expires_unix_s.is_some_and(|time| time <= now_unix_s) {
            return Ok(Self::Expired);
        }
        let acl = if is_superuser { Some(TokenAcl::everything()) } else { acl };
        Ok(Self::Allow { acl: TokenAcl::brought(acl, attributes), expires_unix_s })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::Access;
    use crate::template::Who;

    const NOW_S: u64 = 1_800_000_000;
    const WHO: Who<'static> = Who::new(Some("ann"), "c1");

    fn parse(body: &str) -> Result<BackendAnswer, AnswerError> {
        BackendAnswer::parse(body.as_bytes(), NOW_S)
    }

    #[test]
    fn results_are_told_apart() {
        let plain = BackendAnswer::Allow { acl: None, expires_unix_s: None };
        for (body, expected) in [
            (r#"{"result":"allow"}"#, plain.clone()),
            (r#"{"result":"allow","client_attrs":{},"acl":null,"more":1}"#, plain.clone()),
            (r#"{"result":"allow","client_attrs":null}"#, plain.clone()),
            (r#"{"result":"allow","is_superuser":false,"expire_at":null}"#, plain),
            (r#"{"result":"deny","is_superuser":"x"}"#, BackendAnswer::Deny),
            (r#"{"result":"ignore"}"#, BackendAnswer::Ignore),
            (r#"{"result":"allow","expire_at":1800000000}"#, BackendAnswer::Expired),
            (
                r#"{"result":"allow","expire_at":1800000001}"#,
                BackendAnswer::Allow { acl: None, expires_unix_s: Some(NOW_S + 1) },
            ),
            (
                r#"{"result":"allow","is_superuser":true,"acl":{"pub":["a"]}}"#,
                BackendAnswer::Allow { acl: Some(TokenAcl::everything()), expires_unix_s: None },
            ),
        ] {
            assert_eq!(parse(body), Ok(expected), "{body}");
        }
    }

    #[test]
    fn what_is_not_understood_is_no_answer() {
        for (body, expected) in [
            ("", AnswerError::NoObject),
            ("allow", AnswerError::NoObject),
            ("[]", AnswerError::NoObject),
            (r#"{"result":"allow"}x"#, AnswerError::NoObject),
            ("{}", AnswerError::Result),
            (r#"{"result":true}"#, AnswerError::Result),
            (r#"{"result":"Allow"}"#, AnswerError::Result),
            (r#"{"result":"allow","is_superuser":"true"}"#, AnswerError::Superuser),
            (r#"{"result":"allow","expire_at":"soon"}"#, AnswerError::Expiry),
            (r#"{"result":"allow","expire_at":-1}"#, AnswerError::Expiry),
            // Milliseconds.
            (r#"{"result":"allow","expire_at":1800000000000}"#, AnswerError::Expiry),
            (
                r#"{"result":"allow","clientid_override":"c2"}"#,
                AnswerError::Unsupported("clientid_override"),
            ),
        ] {
            assert_eq!(parse(body), Err(expected), "{body}");
        }
        let odd = parse(r#"{"result":"allow","acl":[{"permission":"allow","qos":[1]}]}"#);
        assert!(matches!(odd, Err(AnswerError::Acl(_))), "{odd:?}");
        // Deeper than the parser goes.
        let deep = format!("{{\"result\":{}", "[".repeat(100_000));
        assert_eq!(parse(&deep), Err(AnswerError::NoObject));
    }

    #[test]
    fn attributes_come_with_rules_and_without() {
        for (more, decided) in [("", None), (r#","acl":{"sub":["a"]}"#, Some(true))] {
            let body = format!(r#"{{"result":"allow","client_attrs":{{"site":"x"}}{more}}}"#);
            let Ok(BackendAnswer::Allow { acl: Some(brought), .. }) = parse(&body) else {
                panic!("{body}");
            };
            assert_eq!(brought.attributes().get("site"), Some("x"));
            assert_eq!(brought.decide(&WHO, Access::Receive, "a"), decided);
        }
        let wrong = parse(r#"{"result":"allow","client_attrs":{"site":3}}"#);
        assert!(matches!(wrong, Err(AnswerError::Attributes(_))), "{wrong:?}");
    }

    #[test]
    fn a_name_does_not_widen_the_rules() {
        let acl = |acl: &str| match parse(&format!(r#"{{"result":"allow","acl":{acl}}}"#)) {
            Ok(BackendAnswer::Allow { acl: Some(acl), .. }) => acl,
            other => panic!("{other:?}"),
        };
        let own = acl(r#"{"sub":["down/%c"]}"#);
        assert!(own.suits(&WHO));
        for client_id in ["+", "#", "a/b"] {
            assert!(!own.suits(&Who { client_id, ..WHO }), "{client_id}");
        }
        assert!(acl(r#"{"sub":["down"]}"#).suits(&Who { client_id: "+", ..WHO }));
    }
}
