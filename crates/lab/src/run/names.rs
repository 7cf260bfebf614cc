//! Names of the plan's streams and receivers, computed instead of stored.

use tacho_load::{ClientIndex, Gap, Plan, Receiver, StreamIndex};

use tacho_record::LostRange;
use tacho_scenario::{ClientPlace, Group, Scenario};

/// Names by the positions that the plan gives to clients and streams.
#[derive(Clone, Debug, Default)]
pub struct Names {
    groups: Vec<Group>,
    machines: u32,
    /// `$share/name/filter` by number.
    shared: Vec<String>,
}

impl Names {
    /// The names of a plan that was made from `scenario`.
    pub(super) fn of(scenario: &Scenario, plan: &Plan) -> Self {
        let groups = scenario.groups.values().filter(|group| group.clients > 0);
        Self {
            groups: groups.cloned().collect(),
            machines: scenario.machines,
            shared: plan
                .shared_groups()
                .iter()
                .map(|group| format!("$share/{}/{}", group.name, group.filter))
                .collect(),
        }
    }

    /// Client identifier and topic of a stream.
    fn stream(&self, stream: StreamIndex) -> (String, String) {
        let mut rest = u64::from(stream.number());
        for group in &self.groups {
            let topics = group.publish.len() as u64;
            let streams = u64::from(group.clients) * topics;
            if rest < streams {
                let place = ClientPlace::new(rest / topics, self.machines);
                let publish = &group.publish[(rest % topics) as usize];
                return (group.client_id(place), publish.topic.expand_at(place));
            }
            rest -= streams;
        }
        (format!("stream {stream}"), String::new())
    }

    /// Client identifier of a receiver, or the shared subscription.
    fn receiver(&self, receiver: Receiver) -> String {
        match receiver {
            Receiver::Client(client) => self.client(client),
            Receiver::Shared(number) => self
                .shared
                .get(number as usize)
                .cloned()
                .unwrap_or_else(|| format!("shared group {number}")),
        }
    }

    /// Client identifier of a client.
    pub(super) fn client(&self, client: ClientIndex) -> String {
        let mut rest = u64::from(client.number());
        for group in &self.groups {
            let clients = u64::from(group.clients);
            if rest < clients {
                return group.client_id(ClientPlace::new(rest, self.machines));
            }
            rest -= clients;
        }
        format!("client {client}")
    }

    /// A run of lost messages with names.
    pub(super) fn lost_range(&self, gap: &Gap) -> LostRange {
        let (publisher, topic) = self.stream(gap.stream);
        LostRange {
            publisher,
            topic,
            receiver: self.receiver(gap.receiver),
            first_seq: gap.first_seq,
            count: gap.count,
            span: gap.span,
            acknowledged: gap.acknowledged,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{PlanOptions, plan};
    use tacho_scenario::{Limits, SourceText};

    #[test]
    fn names_are_those_of_the_plan() {
        let text = "name = 'x'\nmachines = 2\n[groups.a]\nclients = 3\n\
            [[groups.a.publish]]\ntopic = 'one/{{i}}'\nrate = { total = 1 }\n\
            [[groups.a.publish]]\ntopic = 'two/{{i}}'\nrate = { total = 1 }\n\
            [groups.b]\nclients = 0\n[groups.c]\nclients = 2\n\
            [[groups.c.subscribe]]\nfilter = '$share/s{{client}}/#'\n";
        let source = SourceText::new("x", text);
        let scenario = Scenario::parse(&source, &[], Limits::NONE).expect("parses");
        let options = PlanOptions {
            targets: vec![std::net::SocketAddr::from(([127, 0, 0, 1], 1883)).into()],
            threads: 1,
            cpus: vec![],
            own_cores: false,
            run_id: 1,
        };
        let plan = plan(&scenario, &options).expect("a plan");
        let names = Names::of(&scenario, &plan);
        for (index, (client, stream, _)) in StreamIndex::all().zip(plan.streams()) {
            let (_, known) = plan.clients().nth(client.index()).expect("a client");
            assert_eq!(names.stream(index), (known.id.clone(), stream.topic.clone()));
        }
        for (index, (_, client)) in ClientIndex::all().zip(plan.clients()) {
            assert_eq!(names.client(index), client.id);
        }
        assert_eq!(names.receiver(Receiver::Shared(1)), "$share/s1/#");
        assert_eq!(names.receiver(Receiver::Client(ClientIndex::new(4))), "c_m2_0");
        assert_eq!(names.client(ClientIndex::new(99)), "client 99");
    }
}
