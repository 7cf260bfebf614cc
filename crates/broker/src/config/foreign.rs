//! Keys of `mosquitto.conf` in a file of this broker: what to write instead.

/// Why TLS-PSK is not there, and what takes its place.
pub const PSK_REMEDY: &str = "pre-shared keys (TLS-PSK) are not supported, since rustls, the TLS \
    library of this broker, has none from outside: use certificates of a CA of your own \
    (`client_ca`, and `certificate_user = \"cn\"` in [[listeners]]), or user names and passwords \
    over TLS (`password_file` in [access])";

/// What takes the place of the identity as the name of the user.
const IDENTITY_REMEDY: &str = "for certificates write `certificate_user = \"cn\"` in [[listeners]]; \
    the identity of a pre-shared key (TLS-PSK) names no user here, since such keys are not \
    supported";

/// By key of mosquitto.
const REMEDIES: [(&str, &str); 12] = [
    ("psk_file", PSK_REMEDY),
    ("psk_hint", PSK_REMEDY),
    ("use_identity_as_username", IDENTITY_REMEDY),
    ("use_subject_as_username", "write `certificate_user = \"subject\"` in [[listeners]]"),
    (
        "use_username_as_clientid",
        "write `certificate_client_id = \"replace\"` beside `certificate_user` in [[listeners]]",
    ),
    ("certfile", "write `cert`, in [tls] or [[listeners]]"),
    ("keyfile", "write `key`, in [tls] or [[listeners]]"),
    ("cafile", "write `client_ca`, in [tls] or [[listeners]]"),
    ("require_certificate", "write `require_client_certificate`, in [tls] or [[listeners]]"),
    ("crlfile", "write `client_crl`, in [tls] or [[listeners]]"),
    (
        "per_listener_settings",
        "write the keys of a listener in its [[listeners]] entry, without this key",
    ),
    ("persistence_location", "write `data_dir`"),
];

/// A key of mosquitto that the parser does not know, by its error, and what to write instead.
pub(super) fn remedy(message: &str) -> Option<(&'static str, &'static str)> {
    let key = message.strip_prefix("unknown field `")?.split('`').next()?;
    REMEDIES.into_iter().find(|(known, _)| *known == key)
}
