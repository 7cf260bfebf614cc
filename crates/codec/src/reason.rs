//! Reason codes of 5.0 and their equivalents in the older versions.

use std::fmt;

/// A reason code of MQTT 5.0 (section 2.4). Codes from 0x80 on are failures.
///
/// The older versions use the same type; their return codes are mapped when a packet is encoded or
/// decoded, see [`ReasonCode::to_connack_v3`] and [`ReasonCode::to_suback_v3`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct ReasonCode(u8);

macro_rules! reason_codes {
    ($($constant:ident = $value:literal, $name:literal;)*) => {
        impl ReasonCode {
            $(#[doc = concat!("`", stringify!($value), "`: ", $name, ".")]
            pub const $constant: Self = Self($value);)*

            /// The code with this wire value, `None` where 5.0 defines none.
            #[must_use]
            pub const fn from_u8(value: u8) -> Option<Self> {
                match value {
                    $($value => Some(Self($value)),)*
                    _ => None,
                }
            }

            /// The name of the code in the specification, in lower case.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self.0 {
                    $($value => $name,)*
                    _ => "unknown reason code",
                }
            }
        }
    };
}

reason_codes! {
    SUCCESS = 0x00, "success";
    GRANTED_QOS_1 = 0x01, "granted QoS 1";
    GRANTED_QOS_2 = 0x02, "granted QoS 2";
    DISCONNECT_WITH_WILL_MESSAGE = 0x04, "disconnect with will message";
    NO_MATCHING_SUBSCRIBERS = 0x10, "no matching subscribers";
    NO_SUBSCRIPTION_EXISTED = 0x11, "no subscription existed";
    CONTINUE_AUTHENTICATION = 0x18, "continue authentication";
    REAUTHENTICATE = 0x19, "re-authenticate";
    UNSPECIFIED_ERROR = 0x80, "unspecified error";
    MALFORMED_PACKET = 0x81, "malformed packet";
    PROTOCOL_ERROR = 0x82, "protocol error";
    IMPLEMENTATION_SPECIFIC_ERROR = 0x83, "implementation specific error";
    UNSUPPORTED_PROTOCOL_VERSION = 0x84, "unsupported protocol version";
    CLIENT_IDENTIFIER_NOT_VALID = 0x85, "client identifier not valid";
    BAD_USER_NAME_OR_PASSWORD = 0x86, "bad user name or password";
    NOT_AUTHORIZED = 0x87, "not authorized";
    SERVER_UNAVAILABLE = 0x88, "server unavailable";
    SERVER_BUSY = 0x89, "server busy";
    BANNED = 0x8A, "banned";
    SERVER_SHUTTING_DOWN = 0x8B, "server shutting down";
    BAD_AUTHENTICATION_METHOD = 0x8C, "bad authentication method";
    KEEP_ALIVE_TIMEOUT = 0x8D, "keep alive timeout";
    SESSION_TAKEN_OVER = 0x8E, "session taken over";
    TOPIC_FILTER_INVALID = 0x8F, "topic filter invalid";
    TOPIC_NAME_INVALID = 0x90, "topic name invalid";
    PACKET_IDENTIFIER_IN_USE = 0x91, "packet identifier in use";
    PACKET_IDENTIFIER_NOT_FOUND = 0x92, "packet identifier not found";
    RECEIVE_MAXIMUM_EXCEEDED = 0x93, "receive maximum exceeded";
    TOPIC_ALIAS_INVALID = 0x94, "topic alias invalid";
    PACKET_TOO_LARGE = 0x95, "packet too large";
    MESSAGE_RATE_TOO_HIGH = 0x96, "message rate too high";
    QUOTA_EXCEEDED = 0x97, "quota exceeded";
    ADMINISTRATIVE_ACTION = 0x98, "administrative action";
    PAYLOAD_FORMAT_INVALID = 0x99, "payload format invalid";
    RETAIN_NOT_SUPPORTED = 0x9A, "retain not supported";
    QOS_NOT_SUPPORTED = 0x9B, "QoS not supported";
    USE_ANOTHER_SERVER = 0x9C, "use another server";
    SERVER_MOVED = 0x9D, "server moved";
    SHARED_SUBSCRIPTIONS_NOT_SUPPORTED = 0x9E, "shared subscriptions not supported";
    CONNECTION_RATE_EXCEEDED = 0x9F, "connection rate exceeded";
    MAXIMUM_CONNECT_TIME = 0xA0, "maximum connect time";
    SUBSCRIPTION_IDENTIFIERS_NOT_SUPPORTED = 0xA1, "subscription identifiers not supported";
    WILDCARD_SUBSCRIPTIONS_NOT_SUPPORTED = 0xA2, "wildcard subscriptions not supported";
}

impl ReasonCode {
    /// `0x00` as DISCONNECT uses it.
    pub const NORMAL_DISCONNECTION: Self = Self::SUCCESS;
    /// `0x00` as SUBACK uses it.
    pub const GRANTED_QOS_0: Self = Self::SUCCESS;

    /// The wire value.
    #[inline]
    #[must_use]
    pub const fn value(self) -> u8 {
        self.0
    }

    /// True from 0x80 on: the operation failed.
    #[inline]
    #[must_use]
    pub const fn is_error(self) -> bool {
        self.0 >= 0x80
    }

    /// The SUBACK code that grants a QoS.
    #[must_use]
    pub const fn granted(qos: crate::QoS) -> Self {
        Self(qos as u8)
    }

    /// The closest CONNACK return code of 3.1 and 3.1.1: 0 accepted, 1 protocol version, 2 client
    /// identifier, 3 server unavailable, 4 user name or password, 5 not authorized. A failure
    /// without an equivalent becomes 3.
    #[must_use]
    pub const fn to_connack_v3(self) -> u8 {
        match self {
            Self(0x00..=0x7F) => 0,
            Self::UNSUPPORTED_PROTOCOL_VERSION => 1,
            Self::CLIENT_IDENTIFIER_NOT_VALID => 2,
            Self::BAD_USER_NAME_OR_PASSWORD => 4,
            Self::NOT_AUTHORIZED
            | Self::BANNED
            | Self::BAD_AUTHENTICATION_METHOD
            | Self::QOS_NOT_SUPPORTED
            | Self::RETAIN_NOT_SUPPORTED => 5,
            _ => 3,
        }
    }

    /// The reason code for a CONNACK return code of 3.1 and 3.1.1; `None` from 6 on.
    #[must_use]
    pub const fn from_connack_v3(return_code: u8) -> Option<Self> {
        match return_code {
            0 => Some(Self::SUCCESS),
            1 => Some(Self::UNSUPPORTED_PROTOCOL_VERSION),
            2 => Some(Self::CLIENT_IDENTIFIER_NOT_VALID),
            3 => Some(Self::SERVER_UNAVAILABLE),
            4 => Some(Self::BAD_USER_NAME_OR_PASSWORD),
            5 => Some(Self::NOT_AUTHORIZED),
            _ => None,
        }
    }

    /// The SUBACK return code of 3.1 and 3.1.1: the granted QoS, or 0x80 for every failure.
    #[must_use]
    pub const fn to_suback_v3(self) -> u8 {
        if self.is_error() { 0x80 } else { self.0 }
    }
}

impl From<ReasonCode> for u8 {
    fn from(reason: ReasonCode) -> Self {
        reason.0
    }
}

impl fmt::Display for ReasonCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (0x{:02X})", self.name(), self.0)
    }
}

impl fmt::Debug for ReasonCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
