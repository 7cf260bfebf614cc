//! Answers to failed logins that wait: an address whose logins have failed lately is told of the
//! next failure later and later. What it waits for is known already: no thread is kept from other
//! logins, and a login that is right is answered at once.

use tacho_codec::{ReasonCode, Version};
use tacho_net::ConnId;

use super::Connection;
use crate::access::SharedAccess;
use crate::authentication::AuthFailure;
use crate::shard::timers::TimerToken;
use crate::shard::{Net, Shard};

impl Shard {
    /// Refuses a login that may have been a guess, at once or later. Where too many answers wait
    /// already, one that should wait is given at once, and does not say why.
    pub(super) fn refuse_guess(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        version: Version,
        reason: ReasonCode,
    ) {
        let delay_ns = self.count_guess(net, conn);
        if delay_ns == 0 {
            return self.refuse(net, conn, version, reason);
        }
        let waiting_max = self.shared.access.settings.login_delays_max as usize;
        let waiting = self.stats.login_answers_waiting.value() as usize;
        if waiting >= waiting_max.div_ceil(self.shared.shards) {
            self.stats.undelayed_login_answers_total.increment();
            return self.refuse(net, conn, version, ReasonCode::QUOTA_EXCEEDED);
        }
        self.stats.delayed_login_answers_total.increment();
        // In the place of the time for connecting, which may end before that.
        self.cancel_connect_timer(net, conn);
        let token = TimerToken::Connect { connection: conn.index() as u32 };
        let timer = net.set_timer(net.now_ns() + delay_ns, token.encode());
        self.connections.set(conn, Connection::Refusing { id: conn, timer, version, reason });
        net.pause_read(conn);
    }

    /// The same of a client whose method of enhanced authentication has refused it.
    pub(super) fn refuse_authentication(
        &mut self,
        net: &mut Net,
        conn: ConnId,
        failure: &AuthFailure,
    ) {
        match failure.is_guess() {
            true => self.refuse_guess(net, conn, Version::V5, failure.to_connack()),
            false => self.refuse(net, conn, Version::V5, failure.to_connack()),
        }
    }

    /// A login may have been a guess: too many of an address ban it. How long its answer waits.
    pub(super) fn count_guess(&mut self, net: &Net, conn: ConnId) -> u64 {
        let SharedAccess { bans, settings, .. } = &self.shared.access;
        if !bans.counts_logins() {
            return 0;
        }
        let Some(address) = net.peer_addr(conn) else { return 0 };
        let noted = bans.login_failed(address.ip(), net.now_ns());
        let delay_ns = settings.answer_delay_ns(noted.offences);
        if noted.bans {
            let why = format!(
                "{} failed logins, banned for {} s",
                settings.login_failures_max, settings.login_ban_s
            );
            self.tell_banned_address(net, address, &why);
        }
        delay_ns
    }
}
