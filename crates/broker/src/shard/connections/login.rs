//! Logins: a CONNECT with user name and password, where its listener has a password file.
//!
//! A login that was verified a short while ago is accepted at once. Any other is handed to the
//! threads that verify passwords; until their answer comes by mail the connection is
//! `Connection::LoggingIn`: its CONNECT is stored as it arrived, and its socket is not read.

use std::sync::Arc;

use tacho_access::{Proof, Who};
use tacho_codec::{Connect, without_bridge_bit};
use tacho_net::ConnId;

use crate::access::LoginJob;
use crate::authentication::ExchangeRef;
use crate::config::SessionTakeover;
use crate::keys::{ConnectingClient, SessionSlot, User};
use crate::shard::connections::Connection;
use crate::shard::output::Flow;
use crate::shard::{Net, Shard};
use crate::stored_connect::stored_connect;

use super::refused_logins::LoginRefusal;

/// A CONNECT whose password is being verified.
pub(super) struct HeldLogin {
    pub(super) number: u64,
    packet: Vec<u8>,
    client: ConnectingClient,
    user: User,
    /// Absent for a user that does not exist.
    proof: Option<Proof>,
    /// Of the policy that named the users.
    policy: u32,
    /// Its end tells the threads that there is no need to verify.
    _alive: Arc<()>,
}

impl Shard {
    /// Lets a client in whose listener needs no login, and logs in any other.
    pub(in crate::shard) fn log_in(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        connect: &Connect<'_>,
        packet: &[u8],
        mut client: ConnectingClient,
    ) -> Flow {
        let listener = self.connections.listener_of(conn);
        let (users, policy) = self.access.users(listener);
        let Some(users) = users.map(Arc::clone) else {
            // A user name that is not verified is only a claim: the client counts as anonymous.
            return self.connect(net, conn, connect, packet, client);
        };
        let Some(name) = connect.username else {
            if self.shared.access.admits_anonymous(listener) {
                return self.connect(net, conn, connect, packet, client);
            }
            return self.refuse_login(net, conn, connect, &client, LoginRefusal::Anonymous);
        };
        let Some(password) = connect.password else {
            return self.refuse_login(net, conn, connect, &client, LoginRefusal::NoPassword);
        };
        let user = User { name: name.into(), is_listed: true };
        let proof = users.proof(&self.shared.access.key, name, password);
        if let Some(proof) = proof
            && self.access.remembers(proof, net.now_ns())
        {
            self.stats.logins_remembered_total.increment();
            client.user = Some(user);
            return self.connect(net, conn, connect, packet, client);
        }
        let number = self.connections.next_exchange();
        let alive = Arc::new(());
        let job = LoginJob {
            users,
            user: Arc::clone(&user.name),
            password: password.into(),
            client: Arc::downgrade(&alive),
            shard: self.id,
            to: ExchangeRef { connection: conn.index() as u32, number },
        };
        if !self.shared.access.logins.verify(job) {
            return self.refuse_login(net, conn, connect, &client, LoginRefusal::Busy);
        }
        let held = HeldLogin {
            number,
            packet: packet.to_vec(),
            client,
            user,
            proof,
            policy,
            _alive: alive,
        };
        self.connections.hold_login(conn, held);
        net.pause_read(conn);
        Flow::Continue
    }

    /// A password has been verified.
    pub(in crate::shard) fn logged_in(&mut self, net: &mut Net, to: ExchangeRef, is_right: bool) {
        let Some((conn, held)) = self.connections.take_login(to) else { return };
        let HeldLogin { packet, mut client, user, proof, policy, .. } = held;
        let plain = without_bridge_bit(&packet);
        let connect = stored_connect(plain.as_deref().unwrap_or(&packet));
        // Invariant: it was decoded before, when it came.
        let Some(connect) = connect else { return self.drop_connection(net, conn) };
        self.refresh_routes();
        let flow = if policy != self.access.users(0).1 {
            // The users have changed meanwhile.
            self.log_in(net, conn, &connect, &packet, client)
        } else if let (true, Some(proof)) = (is_right, proof) {
            self.access.remember(proof, net.now_ns());
            self.stats.logins_verified_total.increment();
            client.user = Some(user);
            self.connect(net, conn, &connect, &packet, client)
        } else {
            self.refuse_login(net, conn, &connect, &client, LoginRefusal::Wrong)
        };
        if flow == Flow::Continue && matches!(self.connections.get(conn), Connection::Active { .. })
        {
            net.resume_read(conn);
        }
    }

    /// The time for connecting is over, and the password not verified yet.
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

    /// Why a client that is who it says may not have its session all the same.
    pub(super) fn may_open(
        &mut self,
        net: &mut Net,
        connect: &Connect<'_>,
        client: &ConnectingClient,
    ) -> Result<(), LoginRefusal> {
        let user = client.user.as_ref();
        if let Some(will) = &connect.will
            && self.access.has_rules()
        {
            let name = user.map(|user| &*user.name);
            let who = Who { user: name, client_id: &client.key.client_id };
            if !self.access.lets_publish(&who, will.topic) {
                return Err(LoginRefusal::Will); // [MQTT-3.1.4-2]
            }
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
