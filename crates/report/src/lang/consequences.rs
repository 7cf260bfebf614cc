//! Consequences of timed actions, in words.

use tacho_record::Consequence;
use tacho_scenario::format::{self, thousands};

use super::{Lang, statements};

statements! {
    /// A consequence of an action.
    consequence(lang, Consequence);
    Consequence::Reached { clients } => [clients = thousands(*clients);]
        "{clients} clients so far", "目前涉及 {clients} 个客户端";
    Consequence::Connected { clients, of, last_us: None } =>
        [clients = thousands(*clients); of = thousands(*of);]
        "{clients} of {of} back", "{of} 个中有 {clients} 个恢复连接";
    Consequence::Connected { clients, of, last_us: Some(us) } =>
        [clients = thousands(*clients); of = thousands(*of); last = latency(*us);]
        "{clients} of {of} back, the last after {last}",
        "{of} 个中有 {clients} 个恢复连接，最后一个在 {last} 后";
    Consequence::Connected99 { after_ms: None } => []
        "99 % were never connected", "始终未达到 99 % 已连接";
    Consequence::Connected99 { after_ms: Some(ms) } => [after = length(*ms);]
        "99 % connected after {after}", "{after} 后 99 % 已连接";
    Consequence::Served99 { after_ms } => [after = length(*after_ms);]
        "99 % served after {after}", "{after} 后 99 % 恢复服务";
    Consequence::PausedUntil { at_s } => [] "until {at_s:.1} s", "至 {at_s:.1} 秒";
    Consequence::Subscribed { clients, of, last_us: None } =>
        [clients = thousands(*clients); of = thousands(*of);]
        "{clients} of {of} have their SUBACK", "{of} 个中有 {clients} 个收到 SUBACK";
    Consequence::Subscribed { clients, of, last_us: Some(us) } =>
        [clients = thousands(*clients); of = thousands(*of); last = latency(*us);]
        "{clients} of {of} have their SUBACK, the last after {last}",
        "{of} 个中有 {clients} 个收到 SUBACK，最后一个在 {last} 后";
    Consequence::Subscribed99 { after_ms } => [after = length(*after_ms);]
        "99 % had their SUBACK after {after}", "{after} 后 99 % 收到 SUBACK";
    Consequence::RetainedReceived { messages, of: None } => [messages = thousands(*messages);]
        "{messages} retained messages came", "收到 {messages} 条保留消息";
    Consequence::RetainedReceived { messages, of: Some(of) } =>
        [messages = thousands(*messages); of = thousands(*of);]
        "{messages} of {of} retained messages came", "{of} 条保留消息中收到 {messages} 条";
    Consequence::RetainedComplete { last_us: None } => []
        "no client got all of its retained messages", "没有客户端收全其保留消息";
    Consequence::RetainedComplete { last_us: Some(us) } => [last = latency(*us);]
        "the last of a client after {last} at most", "单个客户端的最后一条最迟在 {last} 后到达";
    Consequence::BrokerAway => [] "away", "尚未恢复";
    Consequence::BrokerServes { after_ms } => []
        "serving again after {after_ms:.0} ms", "{after_ms:.0} 毫秒后恢复服务";
    Consequence::CommandRuns => [] "it runs", "正在运行";
    Consequence::CommandExited { code } => [] "exit code {code}", "退出码 {code}";
    Consequence::CommandSignalled => [] "ended by a signal", "被信号终止";
    Consequence::CommandCutShort { why } => [text = lang.cut_short(why);] "{text}", "{text}";
    Consequence::CommandTook { length_s } => [] "after {length_s:.2} s", "用时 {length_s:.2} 秒";
    Consequence::CommandOutput { file } => [] "output in {file}", "输出见 {file}";
    Consequence::FirstConnectionsEnded { connections, of: None } =>
        [connections = thousands(*connections);]
        "{connections} first connections ended", "{connections} 个原连接被结束";
    Consequence::FirstConnectionsEnded { connections, of: Some(of) } =>
        [connections = thousands(*connections); of = thousands(*of);]
        "{connections} of {of} first connections ended", "{of} 个原连接中有 {connections} 个被结束";
    Consequence::ToldOfTakeover { connections } => [connections = thousands(*connections);]
        "{connections} were notified of the takeover",
        "{connections} 个被告知会话已被接管";
    Consequence::WillsReceived { wills, of } => [wills = thousands(*wills); of = thousands(*of);]
        "{wills} of {of} wills came", "{of} 条遗嘱中收到 {wills} 条";
    Consequence::LastWill { last_us: None } => [] "no will came", "没有收到遗嘱";
    Consequence::LastWill { last_us: Some(us) } => [last = latency(*us);]
        "the last after {last}", "最后一条在 {last} 后到达";
    Consequence::AttemptsFailed { attempts, refused: 0 } => [attempts = thousands(*attempts);]
        "{attempts} failed attempts", "{attempts} 次连接尝试失败";
    Consequence::AttemptsFailed { attempts, refused } =>
        [attempts = thousands(*attempts); refused = thousands(*refused);]
        "{attempts} failed attempts ({refused} refused)",
        "{attempts} 次连接尝试失败（其中 {refused} 次被拒绝）";
    Consequence::GivenUp { clients } => [clients = thousands(*clients);]
        "{clients} given up", "放弃 {clients} 个";
    Consequence::Message(message) => [] "{message}", "{message}";
}

impl Lang {
    /// Everything that followed an action.
    pub fn consequences(self, all: &[Consequence]) -> String {
        let all: Vec<String> = all.iter().map(|one| self.consequence(one)).collect();
        all.join(self.between_reasons())
    }
}

fn latency(us: u64) -> String {
    format::latency(us as f64)
}

fn length(ms: f64) -> String {
    format::latency(ms * 1e3)
}
