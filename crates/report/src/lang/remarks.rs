//! What a reader must know before comparing figures.

use tacho_record::{Remark, RunRecord};

use super::{Lang, statements};

statements! {
    /// A note of a run.
    remark(lang, Remark);
    Remark::OneMachine => []
        "One-machine run: generator and broker share this machine, and on loopback the sender's core runs the receiver's TCP. Do not compare with runs over a network.",
        "单机运行：负载生成器与 Broker 共用这台机器，且在回环接口上由发送方的核执行接收方的 TCP 处理。请勿与跨网络的运行相比较。";
    Remark::ClosedModel => []
        "Closed model: publishers wait for the broker, so latency is not that of a fixed load.",
        "闭环模型：发布者会等待 Broker，因此延迟并非固定负载下的延迟。";
    Remark::CertificateNotVerified { broker } => []
        "The certificate of {broker} was not verified (insecure): nobody knows who was measured.",
        "未验证 {broker} 的证书（insecure）：无法确认所测对象的身份。";
    Remark::BrokerNotObserved => []
        "CPU and memory of the broker process were not observed.", "未观测 Broker 进程的 CPU 与内存。";
    Remark::RoundTripsMissing { why } => []
        "Round trips to a broker were not measured all the time: {why}.",
        "到 Broker 的往返时间并未全程测量：{why}。";
    Remark::BrokerKilled => []
        "The broker was killed during the run: what was due while it was away was never sent, and rates and latencies are not those of a broker that lives.",
        "运行期间 Broker 被强制终止：其离线期间应发送的消息从未发送，速率与延迟也不代表正常运行的 Broker。";
    Remark::Eventful => []
        "Things happened to clients, brokers or the machine while the run was measured: whether the load was carried is judged by the groups that nothing happened to.",
        "测量期间客户端、Broker 或机器发生了计划中的事件：是否承载了负载由未受影响的组判断。";
    Remark::Interrupted { count, first } => []
        "{count} times a client lost its connection, or did not get one, and tried again; the first: {first}.",
        "客户端断开或未能建立连接后重试共 {count} 次，第一次：{first}。";
    Remark::Message(message) => [] "{message}", "{message}";
}

impl Lang {
    /// The notes of a record; those of an old one as they are.
    pub(crate) fn notes(self, record: &RunRecord) -> Vec<String> {
        match &record.remarks[..] {
            [] => record.notes.clone(),
            remarks => remarks.iter().map(|remark| self.remark(remark)).collect(),
        }
    }
}
