//! Logins by a schedule, checked.

use toml::Spanned;

use super::checker::{Checked, Checker};
use crate::login::Login;
use crate::quantity::PerSecond;
use crate::raw::{RawGroup, RawLogin};

impl Checker<'_> {
    pub(super) fn login(&self, raw: &Spanned<RawLogin>, group: &RawGroup) -> Checked<Login> {
        let (span, raw) = (raw.span(), raw.get_ref());
        let others = [
            ("publish", !group.publish.is_empty()),
            ("subscribe", !group.subscribe.is_empty()),
            ("offline", group.offline.is_some()),
            ("absent", group.absent.is_some()),
            ("reconnect", group.reconnect.is_some()),
        ];
        if let Some((key, _)) = others.into_iter().find(|(_, is_given)| *is_given) {
            return Err(self
                .error(span, format!("clients that log in by a schedule have no '{key}'"))
                .label(format!("remove 'login' or '{key}'")));
        }
        let rate = raw.rate.get_ref().0;
        if !rate.is_normal() || rate < 0.0 {
            return Err(self.error(raw.rate.span(), "at a rate of 0 no client would log in"));
        }
        let share = |share: &Option<Spanned<f64>>| {
            let Some(share) = share else { return Ok(0.0) };
            let value = *share.get_ref();
            match (0.0..=1.0).contains(&value) {
                true => Ok(value),
                false => Err(self
                    .error(share.span(), format!("a share cannot be {value}"))
                    .label("between 0 and 1")),
            }
        };
        let (wrong_share, unknown_share) = (share(&raw.wrong_share)?, share(&raw.unknown_share)?);
        if wrong_share + unknown_share > 1.0 {
            return Err(self
                .error(span, "wrong passwords and unknown users are more than all logins")
                .label("'wrong_share' and 'unknown_share' are at most 1 together"));
        }
        Ok(Login {
            rate: PerSecond(rate * self.adjustment.scale),
            stay: raw.stay.unwrap_or_default(),
            wrong_share,
            unknown_share,
        })
    }
}
