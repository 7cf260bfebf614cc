//! The messages of both sides, as RFC 5802, 7 has them.

use std::num::NonZeroU32;

use crate::hash::SCRAM_ITERATIONS_ALLOWED;

/// No honest message is longer.
const MESSAGE_BYTES_MAX: usize = 4_096;
const NONCE_BYTES_MAX: usize = 256;

/// Why an exchange ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScramError {
    /// A message is not as the RFC has it.
    #[error("a message of SCRAM is malformed: {0}")]
    Malformed(&'static str),
    /// The client demands a binding to the TLS channel.
    #[error("the client demands channel binding, which is not supported")]
    ChannelBinding,
    /// The client wants to act as another user.
    #[error("the client asks for the rights of another user")]
    OtherUser,
    /// The client demands an extension.
    #[error("the client demands an extension of SCRAM, which is not supported")]
    Extension,
    /// The system gives no random numbers.
    #[error("the system gives no random numbers")]
    NoRandomness,
    /// The server asks for more iterations than it may.
    #[error("the server demands {0} iterations, which would take the client too long")]
    Iterations(u32),
    /// The server has not proved that it knows the password.
    #[error("the server has not proved that it knows the password")]
    ServerUnproved,
    /// The user does not exist, or the password is another.
    #[error("unknown user or wrong password")]
    Wrong,
}

/// The first message of a client.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ClientFirst<'a> {
    /// `n,,` or the like.
    pub(super) gs2_header: &'a str,
    /// What follows it.
    pub(super) bare: &'a str,
    pub(super) user: String,
    pub(super) nonce: &'a str,
}

/// The last message of a client.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ClientFinal<'a> {
    pub(super) binding: &'a str,
    pub(super) nonce: &'a str,
    pub(super) proof: &'a str,
    pub(super) without_proof: &'a str,
}

/// The first message of a server.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ServerFirst<'a> {
    /// All of it.
    pub(super) text: &'a str,
    pub(super) nonce: &'a str,
    pub(super) salt: &'a str,
    pub(super) iterations: NonZeroU32,
}

impl<'a> ServerFirst<'a> {
    pub(super) fn parse(message: &'a [u8]) -> Result<Self, ScramError> {
        let text = text(message)?;
        let mut attributes = text.split(',');
        let first = attributes.next().unwrap_or_default();
        if first.starts_with("m=") {
            return Err(ScramError::Extension);
        }
        let nonce = nonce(attribute("r", first)?)?;
        let salt = attribute("s", attributes.next().unwrap_or_default())?;
        let iterations = attribute("i", attributes.next().unwrap_or_default())?;
        check_extensions(attributes)?;
        let iterations = iterations.parse::<NonZeroU32>();
        let iterations = iterations.map_err(|_| ScramError::Malformed("the iterations"))?;
        if iterations.get() > *SCRAM_ITERATIONS_ALLOWED.end() {
            return Err(ScramError::Iterations(iterations.get()));
        }
        Ok(Self { text, nonce, salt, iterations })
    }
}

/// The signature in the last message of a server.
pub(super) fn server_final(message: &[u8]) -> Result<&str, ScramError> {
    let text = text(message)?;
    let first = text.split(',').next().unwrap_or_default();
    match first.starts_with("e=") {
        true => Err(ScramError::Wrong),
        false => attribute("v", first),
    }
}

fn text(message: &[u8]) -> Result<&str, ScramError> {
    if message.len() > MESSAGE_BYTES_MAX {
        return Err(ScramError::Malformed("it is too long"));
    }
    let text = std::str::from_utf8(message).ok().filter(|text| !text.contains('\0'));
    text.ok_or(ScramError::Malformed("it is no text"))
}

impl<'a> ClientFirst<'a> {
    pub(super) fn parse(message: &'a [u8]) -> Result<Self, ScramError> {
        let message = text(message)?;
        let mut parts = message.splitn(3, ',');
        let (Some(binding), Some(acts_as), Some(bare)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err(ScramError::Malformed("the first message has no header"));
        };
        match binding {
            // `y`: the client could, and believes that the server cannot. It is right.
            "n" | "y" => {}
            _ if binding.starts_with("p=") => return Err(ScramError::ChannelBinding),
            _ => return Err(ScramError::Malformed("the first message has no header")),
        }
        let acts_as = match acts_as {
            "" => None,
            _ => Some(name(attribute("a", acts_as)?)?),
        };
        let mut attributes = bare.split(',');
        let first = attributes.next().unwrap_or_default();
        if first.starts_with("m=") {
            return Err(ScramError::Extension);
        }
        let user = name(attribute("n", first)?)?;
        let nonce = nonce(attribute("r", attributes.next().unwrap_or_default())?)?;
        check_extensions(attributes)?;
        if acts_as.is_some_and(|acts_as| acts_as != user) {
            return Err(ScramError::OtherUser);
        }
        let gs2_header = &message[..message.len() - bare.len()];
        Ok(Self { gs2_header, bare, user, nonce })
    }
}

impl<'a> ClientFinal<'a> {
    pub(super) fn parse(message: &'a [u8]) -> Result<Self, ScramError> {
        let message = text(message)?;
        let (without_proof, proof) =
            message.rsplit_once(',').ok_or(ScramError::Malformed("the last one has no proof"))?;
        let proof = attribute("p", proof)?;
        let mut attributes = without_proof.split(',');
        let binding = attribute("c", attributes.next().unwrap_or_default())?;
        let nonce = nonce(attribute("r", attributes.next().unwrap_or_default())?)?;
        check_extensions(attributes)?;
        Ok(Self { binding, nonce, proof, without_proof })
    }
}

/// The value of an attribute that must be here.
fn attribute<'a>(letter: &str, part: &'a str) -> Result<&'a str, ScramError> {
    let value = part.strip_prefix(letter).and_then(|rest| rest.strip_prefix('='));
    value.ok_or(ScramError::Malformed("an attribute is missing"))
}

/// Those that are not known are ignored.
fn check_extensions<'a>(attributes: impl Iterator<Item = &'a str>) -> Result<(), ScramError> {
    for part in attributes {
        let mut characters = part.chars();
        let is_letter = characters.next().is_some_and(|first| first.is_ascii_alphabetic());
        if !is_letter || characters.next() != Some('=') {
            return Err(ScramError::Malformed("an extension is no attribute"));
        }
        if part.starts_with("m=") {
            return Err(ScramError::Extension);
        }
    }
    Ok(())
}

fn nonce(value: &str) -> Result<&str, ScramError> {
    let is_right = !value.is_empty()
        // The server's part comes to the client's.
        && value.len() <= 2 * NONCE_BYTES_MAX
        && value.bytes().all(|byte| byte.is_ascii_graphic());
    is_right.then_some(value).ok_or(ScramError::Malformed("the nonce"))
}

/// A name without its escapes: `=2C` and `=3D` only.
fn name(value: &str) -> Result<String, ScramError> {
    let wrong = Err(ScramError::Malformed("the user name"));
    let mut parts = value.split('=');
    let mut name = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (character, rest) = match part.as_bytes() {
            [b'2', b'C', ..] => (',', &part[2..]),
            [b'3', b'D', ..] => ('=', &part[2..]),
            _ => return wrong,
        };
        name.push(character);
        name.push_str(rest);
    }
    if name.is_empty() { wrong } else { Ok(name) }
}
