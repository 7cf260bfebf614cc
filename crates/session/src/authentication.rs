//! Enhanced authentication (MQTT 5.0, 4.12), the server's side: when AUTH is legal, and which
//! packet answers it. The methods and the encoding of packets are elsewhere.

use tacho_codec::ReasonCode;

use crate::ProtocolError;

/// The request of the client to its method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthRequest {
    /// The next step of the current exchange.
    Continue,
    /// A new exchange on an authenticated connection.
    Again,
}

/// The method's verdict on the client's step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthVerdict {
    /// The client has to send another step.
    Continue,
    /// The client is authenticated.
    Success,
    /// The client is not authenticated.
    Failure,
}

/// The packet that answers the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthAnswer {
    /// AUTH with this reason code: 0x18, or 0x00 after authenticating again.
    Auth(ReasonCode),
    /// The accepting CONNACK.
    Accept,
    /// A refusing CONNACK; then the connection is closed [MQTT-4.12.0-4].
    Refuse,
    /// A DISCONNECT; then the connection is closed [MQTT-4.12.1-2].
    Disconnect,
}

/// The authentication exchanges of one connection whose CONNECT names a method.
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
    /// Nothing: no exchange is in progress.
    Nothing,
}

impl Authentication {
    /// CONNECT names a method, whose verdict is pending.
    #[must_use]
    pub fn new(method: &str) -> Self {
        Self { method: method.into(), accepted: false, awaits: Awaits::Method }
    }

    /// The method, which does not change during a connection.
    #[must_use]
    pub const fn method(&self) -> &str {
        &self.method
    }

    /// Whether a verdict of the method is pending.
    #[must_use]
    pub fn awaits_method(&self) -> bool {
        self.awaits == Awaits::Method
    }

    /// AUTH arrived: returns its request to the method.
    ///
    /// # Errors
    /// Its method is not that of CONNECT [MQTT-4.12.0-5], [MQTT-4.12.1-1]; the server did not ask
    /// to continue [MQTT-4.12.0-3]; or an exchange is still in progress.
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
                return wrong("AUTH re-authenticates before the last exchange is over");
            }
            _ => return wrong("AUTH continues without a request of the server"),
        };
        self.awaits = Awaits::Method;
        Ok(request)
    }

    /// The method decided: returns the answer to the client; `None` if no verdict was pending.
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
