//! Enhanced authentication (MQTT 5.0, 4.12), the server's side: which AUTH may come when, and what
//! answers it. The methods themselves are elsewhere; so are the packets.

use tacho_codec::ReasonCode;

use crate::ProtocolError;

/// What the client asks of its method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthRequest {
    /// The next step of the exchange under way.
    Continue,
    /// A new exchange on an authenticated connection.
    Again,
}

/// What the method says to the client's step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthVerdict {
    /// It wants to hear more.
    Continue,
    /// It is content.
    Success,
    /// It is not.
    Failure,
}

/// The packet that tells the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthAnswer {
    /// AUTH with this reason code: 0x18, or 0x00 after authenticating again.
    Auth(ReasonCode),
    /// The CONNACK that accepts.
    Accept,
    /// A CONNACK that refuses, then the close [MQTT-4.12.0-4].
    Refuse,
    /// A DISCONNECT, then the close [MQTT-4.12.1-2].
    Disconnect,
}

/// The exchanges of one connection, from a CONNECT that names a method to the connection's end.
#[derive(Debug)]
pub struct Authentication {
    method: Box<str>,
    accepted: bool,
    awaits: Awaits,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaits {
    /// The method's verdict.
    Method,
    /// The client's AUTH.
    Client,
    /// No exchange is under way.
    Nothing,
}

impl Authentication {
    /// CONNECT named a method; its verdict is due.
    #[must_use]
    pub fn new(method: &str) -> Self {
        Self { method: method.into(), accepted: false, awaits: Awaits::Method }
    }

    /// The method, which stays for the whole connection.
    #[must_use]
    pub const fn method(&self) -> &str {
        &self.method
    }

    /// Whether the method owes a verdict.
    #[must_use]
    pub fn awaits_method(&self) -> bool {
        self.awaits == Awaits::Method
    }

    /// AUTH arrived: what it asks of the method.
    ///
    /// # Errors
    /// Its method is not that of CONNECT [MQTT-4.12.0-5], [MQTT-4.12.1-1]; nobody asked to continue
    /// [MQTT-4.12.0-3]; or an exchange is still under way.
    pub fn handle_auth(
        &mut self,
        reason: ReasonCode,
        method: Option<&str>,
    ) -> Result<AuthRequest, ProtocolError> {
        let wrong = |sentence| Err(ProtocolError::new(ReasonCode::PROTOCOL_ERROR, sentence));
        if method != Some(&*self.method) {
            return wrong("AUTH names another method than CONNECT");
        }
        let request = match (reason, self.awaits) {
            (ReasonCode::CONTINUE_AUTHENTICATION, Awaits::Client) => AuthRequest::Continue,
            (ReasonCode::REAUTHENTICATE, Awaits::Nothing) => AuthRequest::Again,
            (ReasonCode::REAUTHENTICATE, _) => {
                return wrong("AUTH begins again before the last exchange is over");
            }
            _ => return wrong("AUTH continues although nobody asked"),
        };
        self.awaits = Awaits::Method;
        Ok(request)
    }

    /// The method's verdict: what to tell the client. `None` when none was due.
    pub fn handle_verdict(&mut self, verdict: AuthVerdict) -> Option<AuthAnswer> {
        if self.awaits != Awaits::Method {
            return None;
        }
        let again = self.accepted;
        self.awaits = Awaits::Nothing;
        Some(match verdict {
            AuthVerdict::Continue => {
                self.awaits = Awaits::Client;
                AuthAnswer::Auth(ReasonCode::CONTINUE_AUTHENTICATION) // [MQTT-4.12.0-2]
            }
            AuthVerdict::Success if again => AuthAnswer::Auth(ReasonCode::SUCCESS),
            AuthVerdict::Success => {
                self.accepted = true;
                AuthAnswer::Accept
            }
            AuthVerdict::Failure if again => AuthAnswer::Disconnect,
            AuthVerdict::Failure => AuthAnswer::Refuse,
        })
    }
}
