//! What a client presents in CONNECT, and its part of an exchange of AUTH packets (5.0, 4.12).

use std::borrow::Cow;
use std::time::{SystemTime, UNIX_EPOCH};

use tacho_access::{SaltedPassword, ScramClient, ServerProof};

use crate::plan::{Authentication, Client, Login, LoginKind, TokenLogin, TokenPlace};

/// What a CONNECT presents.
#[derive(Debug, Default)]
pub(crate) struct Presented<'c> {
    pub(crate) username: Option<Cow<'c, str>>,
    pub(crate) password: Option<Cow<'c, [u8]>>,
    /// The authentication method, and the first data for it.
    pub(crate) method: Option<&'static str>,
    pub(crate) data: Option<Vec<u8>>,
}

/// A client's part of its exchanges; a salted password is kept from one connection to the next,
/// since it takes milliseconds.
#[derive(Debug, Default)]
pub(crate) struct Prover {
    kind: LoginKind,
    awaits: Awaits,
    /// By [`LoginKind`].
    salted: [Option<SaltedPassword>; 3],
}

/// What an exchange waits for.
#[derive(Debug, Default)]
enum Awaits {
    #[default]
    Nothing,
    /// The first message of a server of SCRAM.
    ServerFirst(ScramClient),
    /// Its last one, which comes with CONNACK.
    ServerFinal(ServerProof),
}

impl Prover {
    /// Begins the exchange of a connection.
    ///
    /// # Errors
    /// A sentence, if a token cannot be signed, or a user name is not allowed.
    pub(crate) fn present<'c>(
        &mut self,
        how: &Authentication,
        client: &'c Client,
        kind: LoginKind,
    ) -> Result<Presented<'c>, String> {
        self.kind = kind;
        self.awaits = Awaits::Nothing;
        match how {
            Authentication::Password => Ok(Presented {
                username: username(client, kind),
                password: password(client, kind),
                ..Presented::default()
            }),
            Authentication::Token(token) => self.present_token(token, client),
            Authentication::Scram(hash) => {
                let user = username(client, kind).unwrap_or_default();
                let begun = ScramClient::begin(*hash, &user).map_err(|why| why.to_string())?;
                self.awaits = Awaits::ServerFirst(begun.0);
                let (method, data) = (Some(hash.method()), Some(begun.1));
                Ok(Presented { method, data, ..Presented::default() })
            }
        }
    }

    fn present_token<'c>(
        &self,
        how: &TokenLogin,
        client: &'c Client,
    ) -> Result<Presented<'c>, String> {
        let mut token = signed(how, client)?;
        if self.kind != LoginKind::Right {
            token.push_str(Login::WRONG_SUFFIX);
        }
        let username = client.username.as_deref().map(Cow::Borrowed);
        Ok(match how.place {
            TokenPlace::Password => Presented {
                username,
                password: Some(Cow::Owned(token.into_bytes())),
                ..Presented::default()
            },
            TokenPlace::Username => Presented {
                username: Some(Cow::Owned(token)),
                password: client.password.as_deref().map(Cow::Borrowed),
                ..Presented::default()
            },
            TokenPlace::Auth => Presented {
                username,
                method: Some(TokenLogin::METHOD),
                data: Some(token.into_bytes()),
                ..Presented::default()
            },
        })
    }

    /// Answers the data of an AUTH that asks to continue.
    ///
    /// # Errors
    /// A sentence, if the broker may not ask that, or what it says is wrong.
    pub(crate) fn answer(
        &mut self,
        client: &Client,
        data: Option<&[u8]>,
    ) -> Result<Vec<u8>, String> {
        let Awaits::ServerFirst(exchange) = std::mem::take(&mut self.awaits) else {
            return Err("an AUTH that the authentication method does not have".to_owned());
        };
        let password = password(client, self.kind).unwrap_or_default();
        let salted = &mut self.salted[self.kind as usize];
        let answer = exchange.answer(data.unwrap_or_default(), &password, salted.take());
        let (last, proof, known) = answer.map_err(|why| why.to_string())?;
        *salted = Some(known);
        self.awaits = Awaits::ServerFinal(proof);
        Ok(last)
    }

    /// Checks what comes with the CONNACK that accepts the client.
    ///
    /// # Errors
    /// A sentence, if the broker has proved nothing.
    pub(crate) fn accepted(&mut self, data: Option<&[u8]>) -> Result<(), String> {
        match std::mem::take(&mut self.awaits) {
            Awaits::Nothing => Ok(()),
            Awaits::ServerFirst(_) => Err("a CONNACK before the end of SCRAM".to_owned()),
            Awaits::ServerFinal(proof) => {
                proof.check(data.unwrap_or_default()).map_err(|why| why.to_string())
            }
        }
    }
}

/// A token of the client that is valid from now on.
pub(crate) fn signed(how: &TokenLogin, client: &Client) -> Result<String, String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let ends = now.saturating_add(how.lifetime_s.into());
    let claims = client.claims.clone().unwrap_or_default();
    how.signer.sign(&claims, now, ends).map_err(|why| why.to_string())
}

fn username(client: &Client, kind: LoginKind) -> Option<Cow<'_, str>> {
    match kind {
        LoginKind::UnknownUser => {
            let unknown = [client.username.as_deref().unwrap_or_default(), Login::WRONG_SUFFIX];
            Some(Cow::Owned(unknown.concat()))
        }
        _ => client.username.as_deref().map(Cow::Borrowed),
    }
}

fn password(client: &Client, kind: LoginKind) -> Option<Cow<'_, [u8]>> {
    match kind {
        LoginKind::WrongPassword => {
            let right = client.password.as_deref().unwrap_or_default();
            Some(Cow::Owned([right, Login::WRONG_SUFFIX.as_bytes()].concat()))
        }
        _ => client.password.as_deref().map(Cow::Borrowed),
    }
}
