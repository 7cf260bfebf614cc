//! Effects of timed actions, in words.

use std::time::Duration;

use tacho_record::{ActionEffect, ActionKind, ActionRecord};
use tacho_scenario::TimeSpan;

use super::{Lang, statements};

statements! {
    /// The effect of an action.
    effect(lang, ActionEffect);
    ActionEffect::BreakOff { group, share } => [who = lang.share_of(group, *share);]
        "{who} break off", "{who}异常断开";
    ActionEffect::Disconnect { group, share } => [who = lang.share_of(group, *share);]
        "{who} disconnect", "{who}正常断开";
    ActionEffect::StopReading { group, share, length_s } =>
        [who = lang.share_of(group, *share); length = span(*length_s);]
        "{who} stop reading for {length}", "{who}停止读取 {length}";
    ActionEffect::ConnectAgain { group, share } => [who = lang.share_of(group, *share);]
        "{who} connect a second time", "{who}以同一客户端标识再次连接";
    ActionEffect::Subscribe { group, share } => [who = lang.share_of(group, *share);]
        "{who} subscribe", "{who}订阅";
    ActionEffect::KillBroker { target: None } => []
        "the broker is killed", "Broker 被强制终止";
    ActionEffect::KillBroker { target: Some(name) } => []
        "broker {name} is killed", "Broker {name} 被强制终止";
    ActionEffect::RunCommand { command } => [] "run: {command}", "命令：{command}";
}

impl Lang {
    /// The effect of an action; the sentence of an old record as it is.
    pub(crate) fn what_happened(self, action: &ActionRecord) -> String {
        let effect = action.effect.as_ref();
        effect.map_or_else(|| action.what.clone(), |effect| self.effect(effect))
    }

    /// The kind of an action.
    pub(crate) fn action_kind(self, kind: &ActionKind) -> &str {
        match (self, kind) {
            (Self::En, kind) => kind.as_str(),
            (Self::Zh, ActionKind::Disconnect) => "断开",
            (Self::Zh, ActionKind::Pause) => "暂停",
            (Self::Zh, ActionKind::Takeover) => "接管",
            (Self::Zh, ActionKind::Subscribe) => "订阅",
            (Self::Zh, ActionKind::Kill) => "强制终止",
            (Self::Zh, ActionKind::Run) => "命令",
            (Self::Zh, ActionKind::Other(word)) => word,
        }
    }

    /// All clients of a group, or a share of them.
    fn share_of(self, group: &str, share: f64) -> String {
        let percent = (share * 1e4).round() / 1e2;
        match self {
            Self::En if share >= 1.0 => format!("all of {group}"),
            Self::En => format!("{percent} % of {group}"),
            Self::Zh if share >= 1.0 => format!("{group} 组全部"),
            Self::Zh => format!("{group} 组的 {percent} % "),
        }
    }
}

/// A length of time as scenarios write it.
fn span(seconds: f64) -> String {
    // A length that no scenario can have is shown as 0s.
    TimeSpan(Duration::try_from_secs_f64(seconds).unwrap_or_default()).to_string()
}
