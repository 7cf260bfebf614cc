//! Enhanced authentication (MQTT 5.0, 4.12): AUTH packets between a client and its method.
//!
//! Before CONNACK the connection is [`Connection::Authenticating`] and its CONNECT is stored as it
//! arrived; its session is touched only once the method accepts. Methods answer by mail.

use std::sync::Arc;

use tacho_codec::{Auth, Connect, Direction, Frame, Packet, ReasonCode, UserProperties, Version};
use tacho_net::{ConnId, Remote};
use tacho_session::{AuthAnswer, AuthRequest, Authentication};

use super::login_end::EndSource;
use super::methods::{Method, Validity};
use super::refused_logins::LoginRefusal;
use crate::access::SharedAccess;
use crate::authentication::{
    AuthClient, AuthExchange, AuthFailure, AuthMethods, AuthReply, AuthStep, AuthUser, ExchangeRef,
};
use crate::keys::{ConnectingClient, User};
use crate::mail::Mail;
use crate::shard::connections::Connection;
use crate::shard::output::Flow;
use crate::shard::output::encode_within;
use crate::shard::{Net, Shard};
use crate::stored_connect::stored_connect;
use crate::trace::TraceKind;

/// The authentication methods, and the mailboxes that their answers go to.
pub(crate) struct Authenticators {
    pub(crate) methods: AuthMethods,
    pub(crate) remote: Remote<Mail>,
}

/// The authentication of one connection, for as long as the connection lasts.
pub(crate) struct Exchange {
    number: u64,
    rules: Authentication,
    remote: Remote<Mail>,
    /// Of CONNECT.
    username: Option<Box<str>>,
    /// The exchange under way.
    state: Option<ExchangeState>,
    packet_size_max: u32,
    /// Until CONNACK.
    waiting: Option<HeldConnect>,
}

/// An exchange that is under way.
struct ExchangeState {
    method: Method,
    /// The method's side.
    steps: Box<dyn AuthExchange>,
    /// What a token is verified by again, if keys change before its answer comes.
    first_data: Option<Vec<u8>>,
}

impl ExchangeState {
    /// Begins an exchange. `username` is that of CONNECT.
    fn begin(
        method: Method,
        access: &SharedAccess,
        client: &AuthClient<'_>,
        username: Option<&str>,
    ) -> Self {
        let steps = method.begin(access, client, username);
        Self { method, steps, first_data: None }
    }

    fn step(&mut self, data: Option<&[u8]>, reply: AuthReply) {
        if self.method.is_token() {
            self.first_data = data.map(<[u8]>::to_vec);
        }
        self.steps.step(data, reply);
    }
}

/// A CONNECT that waits for its authentication.
struct HeldConnect {
    packet: Vec<u8>,
    client: ConnectingClient,
}

impl Shard {
    /// Hands a CONNECT that names a known method to it. `packet` is the whole CONNECT.
    pub(in crate::shard) fn authenticate(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        connect: &Connect<'_>,
        packet: &[u8],
        client: ConnectingClient,
    ) -> Flow {
        let name = connect.properties.authentication_method.unwrap_or_default();
        let method = self.auth_method(name, self.connections.listener_of(conn));
        let remote = self.shared.authenticators.as_ref().map(|known| known.remote.clone());
        let (Some(method), Some(remote), Connection::Opening { id, timer, listener }) =
            (method, remote, self.connections.get(conn))
        else {
            self.refuse(net, conn, Version::V5, ReasonCode::BAD_AUTHENTICATION_METHOD);
            return Flow::Stop;
        };
        // The time for connecting goes on to run.
        self.connections.set(conn, Connection::Authenticating { id, timer, listener });
        let asked = AuthClient {
            client_id: &client.key.client_id,
            username: connect.username,
            password: connect.password,
            again: false,
        };
        let access = &self.shared.access;
        let mut state = ExchangeState::begin(method, access, &asked, connect.username);
        let number = self.connections.next_exchange();
        let reply = reply_by_mail(remote.clone(), self.id, exchange_ref(conn, number));
        state.step(connect.properties.authentication_data, reply);
        let exchange = Exchange {
            number,
            rules: Authentication::new(name),
            remote,
            username: connect.username.map(Into::into),
            state: Some(state),
            packet_size_max: connect.properties.packet_size_max.unwrap_or(u32::MAX),
            waiting: Some(HeldConnect { packet: packet.to_vec(), client }),
        };
        self.connections.exchanges.insert(conn.index() as u32, Box::new(exchange));
        Flow::Continue
    }

    /// A packet between CONNECT and CONNACK: AUTH or DISCONNECT [MQTT-3.1.2-30].
    pub(in crate::shard) fn packet_while_authenticating(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        frame: &Frame<'_>,
    ) -> Flow {
        let refused = match Packet::decode(frame, Version::V5, Direction::ToServer) {
            Ok(Packet::Auth(auth)) => {
                self.trace_auth(net, conn, TraceKind::In, &Packet::Auth(auth));
                match self.auth_step(conn, &auth) {
                    Ok(()) => return Flow::Continue,
                    Err((reason, _)) => reason,
                }
            }
            Ok(Packet::Disconnect(_)) => {
                // There is no session and no will yet.
                self.drop_connection(net, conn);
                return Flow::Stop;
            }
            Ok(_) => ReasonCode::PROTOCOL_ERROR,
            Err(error) => return self.protocol_error(net, conn, &error),
        };
        // No DISCONNECT before CONNACK [MQTT-3.14.0-1].
        self.stats.protocol_errors_total.increment();
        self.refuse(net, conn, Version::V5, refused);
        Flow::Stop
    }

    /// AUTH on an accepted connection: a client authenticates again.
    pub(in crate::shard) fn auth_received(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        auth: &Auth<'_>,
    ) -> Flow {
        match self.auth_step(conn, auth) {
            Ok(()) => Flow::Continue,
            Err((reason, why)) => self.end_connection_because(net, conn, reason, why),
        }
    }

    fn auth_step(
        &mut self,
        conn: ConnId,
        auth: &Auth<'_>,
    ) -> Result<(), (ReasonCode, &'static str)> {
        let client_id = match self.connections.get(conn) {
            Connection::Active { session, .. } => {
                Some(Arc::clone(&self.sessions[session].key().client_id))
            }
            _ => None,
        };
        // Without a method in CONNECT there is none [MQTT-4.12.0-7].
        let Some(exchange) = self.connections.exchanges.get_mut(&(conn.index() as u32)) else {
            return Err((
                ReasonCode::PROTOCOL_ERROR,
                "AUTH comes although CONNECT named no method",
            ));
        };
        let request = exchange.rules.handle_auth(auth.reason, auth.method);
        let request = request.map_err(|error| (error.reason(), error.sentence()))?;
        if let (AuthRequest::Again, Some(client_id)) = (request, &client_id) {
            self.begin_again(conn, client_id)?;
        }
        let Some(exchange) = self.connections.exchanges.get_mut(&(conn.index() as u32)) else {
            return Ok(());
        };
        let to = exchange_ref(conn, exchange.number);
        let reply = reply_by_mail(exchange.remote.clone(), self.id, to);
        // Invariant: the rules let AUTH through only while an exchange is under way.
        if let Some(state) = &mut exchange.state {
            state.step(auth.data, reply);
        }
        Ok(())
    }

    /// A connected client begins another exchange, with its method as it is now.
    fn begin_again(
        &mut self,
        conn: ConnId,
        client_id: &str,
    ) -> Result<(), (ReasonCode, &'static str)> {
        let listener = self.connections.listener_of(conn);
        let exchange = self.connections.exchanges.get(&(conn.index() as u32));
        let begun = exchange.and_then(|exchange| {
            let method = self.auth_method(exchange.rules.method(), listener)?;
            let client = AuthClient { client_id, username: None, password: None, again: true };
            let (access, username) = (&self.shared.access, exchange.username.as_deref());
            Some(ExchangeState::begin(method, access, &client, username))
        });
        let Some(state) = begun else {
            let why = "the authentication method is not available any more";
            return Err((ReasonCode::NOT_AUTHORIZED, why));
        };
        let number = self.connections.next_exchange();
        if let Some(exchange) = self.connections.exchanges.get_mut(&(conn.index() as u32)) {
            (exchange.state, exchange.number) = (Some(state), number);
        }
        Ok(())
    }

    /// A method has answered.
    pub(in crate::shard) fn authenticated(
        &mut self,
        net: &mut Net,
        to: ExchangeRef,
        mut step: AuthStep,
    ) {
        let conn = match self.connections.at(to.connection as usize) {
            Connection::Authenticating { id, .. } | Connection::Active { id, .. } => id,
            _ => return,
        };
        let exchange = self.connections.exchanges.get(&to.connection);
        let Some(exchange) = exchange.filter(|exchange| exchange.number == to.number) else {
            return;
        };
        if let (AuthStep::SuccessAs(user), Some(state)) = (&step, &exchange.state) {
            let listener = self.connections.listener_of(conn);
            match self.validity(&state.method, listener, &user.name) {
                Validity::Counts => {}
                Validity::Lost => step = AuthStep::Failure(AuthFailure::BadCredentials),
                Validity::Unknown(method) => return self.verify_again(conn, method),
            }
        }
        let Some(exchange) = self.connections.exchanges.get_mut(&to.connection) else { return };
        let Some(answer) = exchange.rules.handle_verdict(step.verdict()) else { return };
        let ended = match step {
            AuthStep::Continue(_) => None,
            _ => exchange.state.take(),
        };
        match (step, answer) {
            (AuthStep::Continue(data) | AuthStep::Success(data), AuthAnswer::Auth(reason)) => {
                if reason == ReasonCode::SUCCESS {
                    self.stats.authentications_total.increment();
                }
                self.send_auth(net, conn, reason, data.as_deref());
            }
            (AuthStep::SuccessAs(user), AuthAnswer::Auth(_)) => {
                self.authenticated_again(net, conn, *user);
            }
            (AuthStep::Success(data), AuthAnswer::Accept) => {
                self.stats.authentications_total.increment();
                self.accept(net, conn, data.as_deref(), None);
            }
            (AuthStep::SuccessAs(mut user), AuthAnswer::Accept) => {
                self.stats.authentications_total.increment();
                let data = user.data.take();
                self.accept(net, conn, data.as_deref(), Some(*user));
            }
            (AuthStep::Failure(failure), AuthAnswer::Disconnect) => {
                self.fail_again(net, conn, &failure);
            }
            (AuthStep::Failure(failure), _) => {
                self.stats.failed_authentications_total.increment();
                if let Some(HeldConnect { packet, client }) = exchange.waiting.take() {
                    let user = stored_connect(&packet).and_then(|connect| connect.username);
                    let claimed = ended.as_ref().and_then(|ended| ended.steps.claimed_user());
                    let user = claimed.or(user);
                    let client = (&*client.key.client_id, user);
                    self.tell_failed_authentication(net, conn, &failure, client);
                }
                self.refuse_authentication(net, conn, &failure);
            }
            // Invariant: success and continuing are answered as above.
            _ => {}
        }
    }

    /// The keys of tokens have changed before the answer came: the new ones decide.
    fn verify_again(&mut self, conn: ConnId, method: Method) {
        let number = self.connections.next_exchange();
        let client_id = self
            .connections
            .session_of(conn)
            .map(|slot| Arc::clone(&self.sessions[slot].key().client_id));
        let Some(exchange) = self.connections.exchanges.get_mut(&(conn.index() as u32)) else {
            return;
        };
        let of_connect =
            exchange.waiting.as_ref().map(|held| Arc::clone(&held.client.key.client_id));
        let client_id = client_id.or(of_connect).unwrap_or_default();
        let data = exchange.state.take().and_then(|state| state.first_data);
        let (username, password, again) = (None, None, exchange.waiting.is_none());
        let client = AuthClient { client_id: &client_id, username, password, again };
        let (access, username) = (&self.shared.access, exchange.username.as_deref());
        let mut state = ExchangeState::begin(method, access, &client, username);
        let reply = reply_by_mail(exchange.remote.clone(), self.id, exchange_ref(conn, number));
        state.step(data.as_deref(), reply);
        (exchange.state, exchange.number) = (Some(state), number);
    }

    pub(super) fn send_auth(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        reason: ReasonCode,
        data: Option<&[u8]>,
    ) {
        let Some(exchange) = self.connections.exchanges.get(&(conn.index() as u32)) else { return };
        // Always with the method of CONNECT [MQTT-4.12.0-5].
        let packet = Packet::Auth(Auth {
            reason,
            method: Some(exchange.rules.method()),
            data,
            reason_string: None,
            user_properties: UserProperties::EMPTY,
        });
        self.trace_auth(net, conn, TraceKind::Out, &packet);
        // [MQTT-3.15.2-2], [MQTT-3.15.2-3]
        let out = net.out(conn).as_vec_mut();
        if encode_within(packet, Version::V5, exchange.packet_size_max, out) {
            return;
        }
        // More than the client takes, or than an AUTH can hold: the exchange cannot go on.
        let reason = ReasonCode::PACKET_TOO_LARGE;
        match self.connections.get(conn) {
            Connection::Active { .. } => drop(self.end_connection(net, conn, reason)),
            _ => self.refuse(net, conn, Version::V5, reason),
        }
    }

    /// The client is authenticated, as a user where the method knows one: its CONNECT goes on.
    fn accept(&mut self, net: &mut Net, conn: ConnId, data: Option<&[u8]>, user: Option<AuthUser>) {
        let exchange = self.connections.exchanges.get_mut(&(conn.index() as u32));
        let Some(waiting) = exchange.and_then(|exchange| exchange.waiting.take()) else { return };
        let HeldConnect { packet, mut client } = waiting;
        // Invariant: it was decoded before, when it came.
        let Some(mut connect) = stored_connect(&packet) else {
            return self.drop_connection(net, conn);
        };
        // What CONNACK shall carry stands where the client's own data stood.
        connect.properties.authentication_data = data;
        self.refresh_routes();
        if let Some(offence) = self.offence_of(net, conn, &client.key.client_id) {
            // Guesses that were under way when the address was banned get no answer.
            self.refuse_login(net, conn, &connect, &client, LoginRefusal::Banned(offence));
            return;
        }
        if let Some(AuthUser { name, is_listed, rules, ends_in_s, .. }) = user {
            self.limit_login(net, conn, ends_in_s, EndSource::Token);
            client.user = Some(User { name, is_listed, rules });
        }
        self.connect(net, conn, &connect, &packet, client);
    }

    /// How a connection whose time for connecting is over learns of it: by the code that says that
    /// the method did not answer, or not at all.
    pub(in crate::shard) fn authentication_timed_out(&mut self, net: &mut Net, conn: ConnId) {
        let exchange = self.connections.exchanges.get(&(conn.index() as u32));
        if exchange.is_some_and(|exchange| exchange.rules.awaits_method()) {
            self.refuse(net, conn, Version::V5, ReasonCode::SERVER_UNAVAILABLE);
        } else {
            self.drop_connection(net, conn);
        }
    }
}

fn exchange_ref(conn: ConnId, number: u64) -> ExchangeRef {
    ExchangeRef { connection: conn.index() as u32, number }
}

/// A method's answer comes back to the shard as mail, from whichever thread gives it.
fn reply_by_mail(remote: Remote<Mail>, shard: usize, to: ExchangeRef) -> AuthReply {
    AuthReply::new(move |step| {
        remote.post(shard, Mail::Authenticated(to, step));
    })
}
