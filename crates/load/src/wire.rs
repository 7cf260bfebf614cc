//! How plans, mail and reports travel to other processes: forms of types that have none of their
//! own. Both sides run the same version, so the form has no versions.

use serde::de::DeserializeOwned;
use serde::{Serialize, de};

/// What another process sent is not what this version sends.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("what the other side sent cannot be read")]
pub struct WireError;

pub(crate) fn encode(value: &impl Serialize) -> Result<Vec<u8>, WireError> {
    postcard::to_allocvec(value).map_err(|_| WireError)
}

pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, WireError> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok(value),
        _ => Err(WireError),
    }
}

/// A value that several owners share.
pub(crate) mod shared {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer, T: Serialize>(
        value: &Arc<T>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        (**value).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
        from: D,
    ) -> Result<Arc<T>, D::Error> {
        T::deserialize(from).map(Arc::new)
    }
}

/// A list that several owners share.
pub(crate) mod shared_slice {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer, T: Serialize>(
        value: &Arc<[T]>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        (**value).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
        from: D,
    ) -> Result<Arc<[T]>, D::Error> {
        Vec::deserialize(from).map(Arc::from)
    }
}

/// Types of the protocol as the numbers that packets have for them.
macro_rules! as_number {
    ($($module:ident: $type:ty, $to:expr, $from:expr;)*) => {$(
        pub(crate) mod $module {
            use serde::{Deserialize, Deserializer, Serializer};

            pub(crate) fn serialize<S: Serializer>(
                value: &$type,
                to: S,
            ) -> Result<S::Ok, S::Error> {
                let number: fn(&$type) -> u8 = $to;
                to.serialize_u8(number(value))
            }

            pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
                from: D,
            ) -> Result<$type, D::Error> {
                let value: fn(u8) -> Option<$type> = $from;
                super::known(value(u8::deserialize(from)?))
            }
        }
    )*};
}

as_number! {
    qos: tacho_codec::QoS, |qos| *qos as u8, tacho_codec::QoS::from_u8;
    reason: tacho_codec::ReasonCode, |code| code.value(), tacho_codec::ReasonCode::from_u8;
    retain_handling: tacho_codec::RetainHandling, |handling| *handling as u8, |number| {
        use tacho_codec::RetainHandling as To;
        [To::Always, To::IfNew, To::Never].into_iter().find(|to| *to as u8 == number)
    };
    version: tacho_codec::Version, |version| *version as u8, |number| {
        tacho_codec::Version::ALL.into_iter().find(|version| *version as u8 == number)
    };
}

fn known<T, E: de::Error>(value: Option<T>) -> Result<T, E> {
    value.ok_or_else(|| E::custom("a number without a meaning"))
}

/// Counts by reason code.
pub(crate) mod reasons {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use tacho_codec::ReasonCode;

    pub(crate) fn serialize<S: Serializer>(
        value: &BTreeMap<ReasonCode, u64>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        let pairs: Vec<(u8, u64)> =
            value.iter().map(|(code, count)| (code.value(), *count)).collect();
        pairs.serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<BTreeMap<ReasonCode, u64>, D::Error> {
        let pairs = Vec::<(u8, u64)>::deserialize(from)?;
        let pair = |(code, count)| Ok((super::known(ReasonCode::from_u8(code))?, count));
        pairs.into_iter().map(pair).collect()
    }
}

/// The name of a packet, or of the lack of one, that another process has sent.
pub(crate) fn packet_name(name: &str) -> Option<&'static str> {
    const NAMES: [&str; 16] = [
        "CONNECT",
        "CONNACK",
        "PUBLISH",
        "PUBACK",
        "PUBREC",
        "PUBREL",
        "PUBCOMP",
        "SUBSCRIBE",
        "SUBACK",
        "UNSUBSCRIBE",
        "UNSUBACK",
        "PINGREQ",
        "PINGRESP",
        "DISCONNECT",
        "AUTH",
        "an incomplete header",
    ];
    NAMES.into_iter().find(|known| *known == name)
}

#[cfg(test)]
mod tests;
