//! Logins: a CONNECT with user name and password, or with a token, where clients log in.
//!
//! A password that was verified a short while ago is accepted at once. All else is handed to the
//! threads that verify credentials; until their answer comes by mail the connection is
//! `Connection::LoggingIn`: its CONNECT is stored as it arrived, and its socket is not read.

use std::sync::Arc;

use tacho_access::{Access, Proof, PublishKind, Users, Who, looks_like_token};
use tacho_codec::{Connect, without_bridge_bit};
use tacho_net::ConnId;

use crate::access::{AnswerTo, Credentials, LoginJob};
use crate::authentication::ExchangeRef;
use crate::config::{SessionTakeover, TokenPlace};
use crate::keys::{ConnectingClient, SessionSlot, User};
use crate::login_answer::{LoginAnswer, TokenLogin};
use crate::shard::connections::Connection;
use crate::shard::output::Flow;
use crate::shard::{Net, Shard};
use crate::stored_connect::stored_connect;

use super::refused_logins::LoginRefusal;

/// A CONNECT whose credentials are being verified.
pub(super) struct HeldLogin {
    pub(super) number: u64,
    packet: Vec<u8>,
    client: ConnectingClient,
    /// Absent where they are a token.
    password: Option<HeldPassword>,
    /// Of the policy that named users and keys.
    policy: u32,
    /// Its end tells the threads that there is no need to verify.
    _alive: Arc<()>,
}

/// The user of a password that is being verified.
struct HeldPassword {
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
        if users.is_none() && verifier.is_none() {
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
            return self.hold_login(net, conn, connect, packet, client, (credentials, None));
        }
        let Some(name) = connect.username else {
            if self.shared.access.admits_anonymous(listener) {
                return self.connect(net, conn, connect, packet, client);
            }
            return self.refuse_login(net, conn, connect, &client, LoginRefusal::Anonymous);
        };
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

    fn log_in_by_password(
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
        let password = Some(HeldPassword { user, proof });
        self.hold_login(net, conn, connect, packet, client, (credentials, password))
    }

    /// Hands credentials to the threads, and holds the CONNECT until they answer.
    fn hold_login(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        connect: &Connect<'_>,
        packet: &[u8],
        client: ConnectingClient,
        (credentials, password): (Credentials, Option<HeldPassword>),
    ) -> Flow {
        let number = self.connections.next_exchange();
        let alive = Arc::new(());
        let job = LoginJob {
            credentials,
            client: Arc::downgrade(&alive),
            answer_to: AnswerTo::Shard(
                self.id,
                ExchangeRef { connection: conn.index() as u32, number },
            ),
        };
        if !self.shared.access.logins.verify(job) {
            return self.refuse_login(net, conn, connect, &client, LoginRefusal::Busy);
        }
        let (packet, policy) = (packet.to_vec(), self.access.version());
        let held = HeldLogin { number, packet, client, password, policy, _alive: alive };
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
        let HeldLogin { packet, mut client, password, policy, .. } = held;
        let plain = without_bridge_bit(&packet);
        let connect = stored_connect(plain.as_deref().unwrap_or(&packet));
        // Invariant: it was decoded before, when it came.
        let Some(connect) = connect else { return self.drop_connection(net, conn) };
        self.refresh_routes();
        let flow = if let Some(offence) = self.offence_of(net, conn, &client.key.client_id) {
            // Guesses that were under way when the address was banned get no answer.
            self.refuse_login(net, conn, &connect, &client, LoginRefusal::Banned(offence))
        } else if policy != self.access.version() {
            // Users and keys have changed meanwhile.
            self.log_in(net, conn, &connect, &packet, client)
        } else {
            match self.user_of(net, conn, answer, password) {
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
        password: Option<HeldPassword>,
    ) -> Result<User, LoginRefusal> {
        match (answer, password) {
            (LoginAnswer::Password(true), Some(HeldPassword { user, proof: Some(proof) })) => {
                self.access.remember(proof, net.now_ns());
                Ok(user)
            }
            (LoginAnswer::Password(_), _) => Err(LoginRefusal::Wrong),
            (LoginAnswer::Token(Ok(TokenLogin { user, rules, ends_in_s })), _) => {
                self.limit_login(net, conn, ends_in_s);
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
