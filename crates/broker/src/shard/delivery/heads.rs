//! One message's PUBLISH heads, encoded once per layout and shared by all its receivers.

use tacho_codec::{Publish, PublishHead, QoS, Version};

use crate::message::Message;

/// The layouts: 3.x or 5.0, without or with a packet identifier.
const LAYOUTS: usize = 4;

/// The heads of the message whose fan-out is going on.
#[derive(Default)]
pub(super) struct Heads {
    message: Option<Message>,
    encoded: [bool; LAYOUTS],
    heads: [PublishHead; LAYOUTS],
}

impl Heads {
    /// The message about to go to several receivers.
    pub(super) fn begin(&mut self, message: &Message) {
        self.message = Some(message.clone());
        self.encoded = [false; LAYOUTS];
    }

    /// Its fan-out is over or interrupted.
    pub(super) fn end(&mut self) {
        self.message = None;
    }

    /// The head of `publish`, if it is the message of this fan-out and nothing in it is one
    /// receiver's own.
    #[inline]
    pub(super) fn head(
        &mut self,
        message: &Message,
        publish: &Publish<'_>,
        version: Version,
    ) -> Option<&PublishHead> {
        let shared = self.message.as_ref().is_some_and(|m| m.is_same(message));
        let p = &publish.properties;
        if !shared || !p.subscription_ids.is_empty() || p.topic_alias.is_some() {
            return None;
        }
        let layout = usize::from(version.is_v5()) * 2 + usize::from(publish.qos != QoS::AtMostOnce);
        if !self.encoded[layout] {
            self.heads[layout].encode(publish, version).ok()?;
            self.encoded[layout] = true;
        }
        Some(&self.heads[layout])
    }
}
