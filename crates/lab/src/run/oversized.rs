//! Packets that clients did not accept, for the findings of a run.

use tacho_load::Failure;
use tacho_record::{Finding, Observation, Severity};

use crate::findings::finding;

/// Code of the finding about packets that are larger than clients accept.
const PACKET_TOO_LARGE: &str = "packet_too_large";
/// Code of the finding about incomplete packets beyond the generator's budget.
const RECEIVE_BUDGET: &str = "receive_budget";

/// The first client that failed in each way; the count of all is in it.
#[derive(Debug, Default)]
pub(super) struct Oversized {
    too_large: Option<Observation>,
    beyond_budget: Option<Observation>,
}

impl Oversized {
    /// Takes the failure of a client.
    pub(super) fn note(&mut self, client: impl FnOnce() -> String, why: &Failure) {
        let (known, first) = match *why {
            Failure::PacketTooLarge { packet, limit_bytes } => {
                let first = |client| Observation::PacketTooLarge {
                    clients: 0,
                    client,
                    packet: packet.name.to_owned(),
                    announced_bytes: packet.bytes.into(),
                    limit_bytes: limit_bytes.into(),
                };
                (&mut self.too_large, first(client()))
            }
            Failure::ReceiveBudget { packet, budget_bytes } => {
                let first = |client| Observation::ReceiveBudget {
                    clients: 0,
                    client,
                    packet: packet.name.to_owned(),
                    announced_bytes: packet.bytes.into(),
                    budget_bytes,
                };
                (&mut self.beyond_budget, first(client()))
            }
            _ => return,
        };
        if let Observation::PacketTooLarge { clients, .. }
        | Observation::ReceiveBudget { clients, .. } = known.get_or_insert(first)
        {
            *clients += 1;
        }
    }

    /// The findings, about the whole run.
    pub(super) fn findings(self) -> impl Iterator<Item = Finding> {
        let all = [(PACKET_TOO_LARGE, self.too_large), (RECEIVE_BUDGET, self.beyond_budget)];
        all.into_iter().filter_map(|(code, observation)| {
            Some(finding(code, Severity::Error, observation?, None))
        })
    }
}

#[cfg(test)]
mod tests {
    use tacho_load::OversizedPacket;

    use super::*;

    #[test]
    fn first_packet_is_named_and_all_clients_are_counted() {
        let packet = |name, bytes| OversizedPacket { name, bytes };
        let large = |packet| Failure::PacketTooLarge { packet, limit_bytes: 1 << 20 };
        let mut oversized = Oversized::default();
        for (client, why) in [
            ("a", large(packet("PUBLISH", 268_435_460))),
            ("b", Failure::Closed),
            ("c", Failure::ReceiveBudget { packet: packet("CONNACK", 900_000), budget_bytes: 7 }),
            ("d", large(packet("CONNACK", 5 << 20))),
        ] {
            oversized.note(|| client.to_owned(), &why);
        }
        let findings: Vec<Finding> = oversized.findings().collect();
        let codes: Vec<&str> = findings.iter().map(|finding| finding.code.as_str()).collect();
        assert_eq!(codes, ["packet_too_large", "receive_budget"]);
        let first = Observation::PacketTooLarge {
            clients: 2,
            client: "a".into(),
            packet: "PUBLISH".into(),
            announced_bytes: 268_435_460,
            limit_bytes: 1 << 20,
        };
        assert_eq!(findings[0].observation, Some(first));
        assert_eq!(Oversized::default().findings().count(), 0);
    }
}
