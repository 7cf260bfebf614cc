//! A connected client that has authenticated again.

use tacho_codec::ReasonCode;
use tacho_net::ConnId;

use crate::authentication::{AuthFailure, AuthUser};
use crate::keys::User;
use crate::shard::{Net, Shard};

impl Shard {
    /// The client has authenticated as this user, by a method of the broker: it must be the user
    /// that it is. Rules and end of a new token apply at once.
    pub(super) fn authenticated_again(&mut self, net: &mut Net, conn: ConnId, user: AuthUser) {
        let Some(slot) = self.connections.session_of(conn) else { return };
        if self.sessions[slot].access.user_name() != Some(&*user.name) {
            return self.fail_again(net, conn, &AuthFailure::OtherUser);
        }
        self.stats.authentications_total.increment();
        let AuthUser { name, is_listed, rules, ends_in_s, data } = user;
        let origin = self.origin_of(net, conn);
        self.give_to(slot, Some(User { name, is_listed, rules }), origin);
        self.record_word_of_token(slot);
        self.renew_login(net, conn, ends_in_s);
        if self.end_forbidden_subscriptions(net, slot) && self.access.tells_revoked() {
            // Only that tells the client what it has lost, as after a reload.
            return self.end_by_rules(net, slot, conn);
        }
        self.send_auth(net, conn, ReasonCode::SUCCESS, data.as_deref());
    }

    /// The connected client has not authenticated again as it should: it is disconnected
    /// [MQTT-4.12.1-2].
    pub(super) fn fail_again(&mut self, net: &mut Net, conn: ConnId, failure: &AuthFailure) {
        self.stats.failed_authentications_total.increment();
        if let Some(slot) = self.connections.session_of(conn) {
            self.tell_failed_reauthentication(net, conn, failure, slot);
        }
        self.end_connection(net, conn, failure.to_disconnect());
    }
}
