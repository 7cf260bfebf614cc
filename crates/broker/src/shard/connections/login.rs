//! Logins: a CONNECT with user name and password, or with a token, where clients log in. The steps
//! are a certificate, a token, and then the password file and the backend in the order of the
//! configuration; a step decides, or leaves it to the next one.
//!
//! A password that was verified a short while ago is accepted at once. All else is handed to the
//! threads that verify credentials, or ask a backend; until their answer comes by mail the
//! connection is `Connection::LoggingIn`: its CONNECT is stored as it arrived, and its socket is
//! not read.

use std::sync::Arc;

use tacho_access::{Access, FilledRequest, Proof, PublishKind, Users, Who, looks_like_token};
use tacho_codec::{Connect, without_bridge_bit};
use tacho_net::ConnId;

use crate::access::{AnswerTo, BackendJob, Credentials, LoginJob};
use crate::authentication::ExchangeRef;
use crate::config::{SessionTakeover, TokenPlace};
use crate::keys::{ConnectingClient, SessionSlot, User};
use crate::login_answer::{LoginAnswer, TokenLogin};
use crate::shard::access::attributes_of;
use crate::shard::connections::Connection;
use crate::shard::output::Flow;
use crate::shard::{Net, Shard};
use crate::stored_connect::stored_connect;

use super::login_end::EndSource;
use super::refused_logins::LoginRefusal;

/// A CONNECT whose credentials are being verified.
pub(super) struct HeldLogin {
    pub(super) number: u64,
    packet: Vec<u8>,
    client: ConnectingClient,
    asked: HeldAs,
    /// Of the policy that named users and keys.
    policy: u32,
    /// Its end tells the threads that there is no need to verify.
    _alive: Arc<()>,
}

/// What is being verified.
enum HeldAs {
    Token,
    Password(HeldPassword),
    /// What the backend is asked.
    Backend(Proof),
}

/// What a login is decided by, elsewhere.
pub(super) enum AskedLogin {
    Token(Credentials),
    Password(Credentials, HeldPassword),
    Backend(FilledRequest, Proof),
}

/// The user of a password that is being verified.
pub(super) struct HeldPassword {
    user: User,
    /// Absent for a user that does not exist.
    proof: Option<Proof>,
}

impl Shard {
    /// Lets a client in whose listener needs no login, and logs in any other: by its token where
    /// it has one and tokens count, else by its password.
    pub(in crate::shard) fn log_in(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        connect: &Connect<'_>,
        packet: &[u8],
        client: ConnectingClient,
    ) -> Flow {
        let client = match self.log_in_by_certificate(net, conn, connect, packet, client) {
            Ok(client) => client,
            Err(flow) => return flow,
        };
        let listener = self.connections.listener_of(conn);
        let (users, verifier) = (self.access.users(listener), self.access.tokens());
        let has_backend = self.shared.access.backend(listener).is_some();
        if users.is_none() && verifier.is_none() && !has_backend {
            // A user name that is not verified is only a claim: the client counts as anonymous.
            return self.connect(net, conn, connect, packet, client);
        }
        if let (Some(verifier), Some(token)) = (verifier, self.token_of(connect)) {
            let credentials = Credentials::Token {
                verifier: Arc::clone(verifier),
                token: token.into(),
                client_id: Arc::clone(&client.key.client_id),
                user: connect.username.map(Into::into),
            };
            let asked = AskedLogin::Token(credentials);
            return self.hold_login(net, conn, connect, packet, client, asked);
        }
        let Some(name) = connect.username else {
            if self.shared.access.admits_anonymous(listener) {
                return self.connect(net, conn, connect, packet, client);
            }
            return self.refuse_login(net, conn, connect, &client, LoginRefusal::Anonymous);
        };
        if self.asks_backend_about(listener, name) {
            return self.log_in_by_backend(net, conn, connect, packet, client, name);
        }
        let Some(users) = users.map(Arc::clone) else {
            return self.refuse_login(net, conn, connect, &client, LoginRefusal::NoToken);
        };
        self.log_in_by_password(net, conn, connect, packet, client, (users, name))
    }

    /// What a client gives as a token, if it gives one.
    fn token_of<'a>(&self, connect: &Connect<'a>) -> Option<&'a str> {
        let credentials = match self.shared.access.settings.jwt.as_ref()?.from {
            TokenPlace::Password => std::str::from_utf8(connect.password?).ok()?,
            TokenPlace::Username => connect.username?,
        };
        looks_like_token(credentials).then_some(credentials)
    }

    pub(super) fn log_in_by_password(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        connect: &Connect<'_>,
        packet: &[u8],
        mut client: ConnectingClient,
        (users, name): (Arc<Users>, &str),
    ) -> Flow {
        let Some(password) = connect.password else {
            return self.refuse_login(net, conn, connect, &client, LoginRefusal::NoPassword);
        };
        let user = User { name: name.into(), is_listed: true, rules: None };
        let proof = users.proof(&self.shared.access.key, name, password);
        if let Some(proof) = proof
            && self.access.remembers(proof, net.now_ns())
        {
            self.stats.logins_remembered_total.increment();
            client.user = Some(user);
            return self.connect(net, conn, connect, packet, client);
        }
        let name = Arc::clone(&user.name);
        let credentials = Credentials::Password { users, user: name, password: password.into() };
        let asked = AskedLogin::Password(credentials, HeldPassword { user, proof });
        self.hold_login(net, conn, connect, packet, client, asked)
    }

    /// Hands a login to the threads, and holds the CONNECT until they answer.
    pub(super) fn hold_login(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        connect: &Connect<'_>,
        packet: &[u8],
        client: ConnectingClient,
        asked: AskedLogin,
    ) -> Flow {
        let number = self.connections.next_exchange();
        let alive = Arc::new(());
        let (shard, client_is_there) = (self.id, Arc::downgrade(&alive));
        let to = ExchangeRef { connection: conn.index() as u32, number };
        let access = &self.shared.access;
        let verify = |credentials| {
            let answer_to = AnswerTo::Shard(shard, to);
            let client = client_is_there.clone();
            access.logins.verify(LoginJob { credentials, client, answer_to })
        };
        let (is_taken, asked) = match asked {
            AskedLogin::Token(credentials) => (verify(credentials), HeldAs::Token),
            AskedLogin::Password(credentials, password) => {
                (verify(credentials), HeldAs::Password(password))
            }
            AskedLogin::Backend(request, proof) => {
                let job = BackendJob { request, client: client_is_there, shard, to };
                let backend = access.backend(self.connections.listener_of(conn));
                let is_taken = backend.is_some_and(|(_, backend)| backend.ask(job));
                (is_taken, HeldAs::Backend(proof))
            }
        };
        if !is_taken {
            return self.refuse_login(net, conn, connect, &client, LoginRefusal::Busy);
        }
        let (packet, policy) = (packet.to_vec(), self.access.version());
        let held = HeldLogin { number, packet, client, asked, policy, _alive: alive };
        self.connections.hold_login(conn, held);
        net.pause_read(conn);
        Flow::Continue
    }

    /// Credentials have been verified.
    pub(in crate::shard) fn logged_in(
        &mut self,
        net: &mut Net,
        to: ExchangeRef,
        answer: LoginAnswer,
    ) {
        let Some((conn, held)) = self.connections.take_login(to) else { return };
        let HeldLogin { packet, mut client, asked, policy, .. } = held;
        let plain = without_bridge_bit(&packet);
        let connect = stored_connect(plain.as_deref().unwrap_or(&packet));
        // Invariant: it was decoded before, when it came.
        let Some(connect) = connect else { return self.drop_connection(net, conn) };
        self.refresh_routes();
        let flow = if let Some(offence) = self.offence_of(net, conn, &client.key.client_id) {
            // Guesses that were under way when the address was banned get no answer.
            self.refuse_login(net, conn, &connect, &client, LoginRefusal::Banned(offence))
        } else if let LoginAnswer::Backend(answer) = answer {
            let proof = match asked {
                HeldAs::Backend(proof) => Some(proof),
                HeldAs::Token | HeldAs::Password(_) => None,
            };
            self.backend_answered(net, conn, &connect, &packet, client, (answer, proof))
        } else if policy != self.access.version() {
            // Users and keys have changed meanwhile.
            self.log_in(net, conn, &connect, &packet, client)
        } else {
            match self.user_of(net, conn, answer, asked) {
                Ok(user) => {
                    self.stats.logins_verified_total.increment();
                    client.user = Some(user);
                    self.connect(net, conn, &connect, &packet, client)
                }
                Err(why) => self.refuse_login(net, conn, &connect, &client, why),
            }
        };
        if flow == Flow::Continue && matches!(self.connections.get(conn), Connection::Active { .. })
        {
            net.resume_read(conn);
        }
    }

    /// The user that a client has logged in as.
    fn user_of(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        answer: LoginAnswer,
        asked: HeldAs,
    ) -> Result<User, LoginRefusal> {
        match (answer, asked) {
            (
                LoginAnswer::Password(true),
                HeldAs::Password(HeldPassword { user, proof: Some(proof) }),
            ) => {
                self.access.remember(proof, net.now_ns());
                Ok(user)
            }
            (LoginAnswer::Password(_), _) => Err(LoginRefusal::Wrong),
            // Invariant: followed before.
            (LoginAnswer::Backend(_), _) => Err(LoginRefusal::NoStep),
            (LoginAnswer::Token(Ok(TokenLogin { user, rules, ends_in_s })), _) => {
                self.limit_login(net, conn, ends_in_s, EndSource::Token);
                Ok(User { name: user, is_listed: false, rules })
            }
            (LoginAnswer::Token(Err(error)), _) => Err(LoginRefusal::Token(error)),
        }
    }

    /// The time for connecting is over, and the credentials not verified yet.
    pub(in crate::shard) fn login_timed_out(&mut self, net: &mut Net, conn: ConnId) {
        let Some(HeldLogin { packet, client, .. }) = self.connections.drop_login(conn) else {
            return;
        };
        let plain = without_bridge_bit(&packet);
        let connect = stored_connect(plain.as_deref().unwrap_or(&packet));
        // Invariant: it was decoded before, when it came.
        let Some(connect) = connect else { return self.drop_connection(net, conn) };
        self.refuse_login(net, conn, &connect, &client, LoginRefusal::Late);
    }

    /// Whether a session is another user's, and must not be taken over by this one.
    fn is_strangers(&self, slot: SessionSlot, user: Option<&User>) -> bool {
        let owner = self.sessions[slot].access.user_name();
        if owner == user.map(|user| &*user.name) {
            return false;
        }
        match self.shared.access.settings.session_takeover {
            SessionTakeover::SameUser => true,
            SessionTakeover::FromAnonymous => owner.is_some(),
            SessionTakeover::AnyUser => false,
        }
    }

    /// Whether the rules let a client connect, and leave its will.
    fn may_be_here(
        &self,
        net: &Net,
        conn: ConnId,
        connect: &Connect<'_>,
        client: &ConnectingClient,
    ) -> Result<(), LoginRefusal> {
        let user = client.user.as_ref();
        let who = Who {
            user: user.map(|user| &*user.name),
            client_id: &client.key.client_id,
            origin: self.origin_of(net, conn),
            attributes: Some(attributes_of(user)),
        };
        if let Some(decision) = self.access.connecting(&who)
            && !decision.is_allowed
        {
            return Err(LoginRefusal::ByRule(decision.cause));
        }
        let Some(will) = &connect.will else { return Ok(()) };
        let limits = self.access.limits_of(who.user);
        if let Some(exceeded) = limits.exceeded(will.topic, will.qos as u8, will.retain) {
            return Err(LoginRefusal::OverLimit(exceeded)); // [MQTT-3.2.2-12], [MQTT-3.2.2-13]
        }
        let rules = user.and_then(|user| user.rules.as_deref());
        let kind = PublishKind::new(will.qos as u8, will.retain);
        let answers = will.properties.response_topic.filter(|_| self.access.asks_response_topics());
        let asked = answers.map(|topic| (Access::Receive, topic));
        let mut asked = asked.into_iter().chain([(Access::Publish(kind), will.topic)]);
        match asked.all(|(access, topic)| self.access.lets(&who, rules, access, topic)) {
            true => Ok(()),
            false => Err(LoginRefusal::Will), // [MQTT-3.1.4-2]
        }
    }

    /// Why a client that is who it says may not have its session all the same.
    pub(super) fn may_open(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        connect: &Connect<'_>,
        client: &ConnectingClient,
    ) -> Result<(), LoginRefusal> {
        self.check_certificate(net, conn, client)?;
        let user = client.user.as_ref();
        let name = user.map(|user| &*user.name).or(connect.username);
        // Asked before, with the name that it claims; this is the one that is verified.
        if let Some(banned) = self.ban_of(net, conn, &client.key.client_id, name) {
            return Err(LoginRefusal::InBanFile(banned));
        }
        if self.access.has_rules() {
            self.may_be_here(net, conn, connect, client)?;
        }
        let Some(slot) = self.sessions.find(&client.key) else { return Ok(()) };
        if !self.is_strangers(slot, user) {
            return Ok(());
        }
        // It may have expired.
        self.session_timeout(net, slot);
        match self.sessions.find(&client.key) {
            Some(slot) if self.is_strangers(slot, user) => Err(LoginRefusal::Stranger),
            _ => Ok(()),
        }
    }
}
