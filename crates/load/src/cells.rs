//! Cells: the finest unit of aggregation, the clients of one group at one broker.
//!
//! Most plans have one cell per group. The figures of a group, of a broker and of the whole run are
//! sums over cells.

use crate::plan::{ClientIndex, Plan};

/// The cells of a plan.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cells {
    pub(crate) infos: Vec<Cell>,
    /// Cell of each client.
    cell_of_client: Vec<u16>,
    /// Names of the brokers, in order of first appearance.
    pub(crate) targets: Vec<String>,
}

/// One cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cell {
    /// Position of the group in the plan.
    pub(crate) group: usize,
    /// Position in [`Cells::targets`].
    pub(crate) target: usize,
    pub(crate) clients: u64,
}

impl Cells {
    pub(crate) fn new(plan: &Plan) -> Self {
        let mut cells = Self::default();
        let mut indexes = ClientIndex::all();
        for (group, members) in plan.groups.iter().enumerate() {
            for (_, index) in members.clients.iter().zip(&mut indexes) {
                let name = plan.target_of(members, index).map_or("", |target| &target.name);
                let known = cells.targets.iter().position(|target| target == name);
                let target = known.unwrap_or_else(|| {
                    cells.targets.push(name.to_owned());
                    cells.targets.len() - 1
                });
                let same = |cell: &Cell| (cell.group, cell.target) == (group, target);
                // A group has few cells, and they are the most recent ones.
                let at = cells.infos.iter().rposition(same).unwrap_or_else(|| {
                    cells.infos.push(Cell { group, target, clients: 0 });
                    cells.infos.len() - 1
                });
                cells.infos[at].clients += 1;
                cells.cell_of_client.push(at as u16);
            }
        }
        cells
    }

    pub(crate) fn cell_of(&self, client: ClientIndex) -> usize {
        usize::from(self.cell_of_client[client.index()])
    }

    pub(crate) const fn len(&self) -> usize {
        self.infos.len()
    }
}

#[cfg(test)]
mod tests {
    use tacho_codec::QoS;

    use super::*;
    use crate::plan::Target;
    use crate::plan::tests::{plan_of, publisher};

    #[test]
    fn a_cell_is_a_group_at_a_broker() {
        let mut plan = plan_of((0..2).map(|_| publisher("t", QoS::AtMostOnce)).collect());
        let more = plan.groups[0].clients[0].clone();
        plan.groups[0].clients.extend([more.clone(), more]);
        let addr = |port| std::net::SocketAddr::from(([127, 0, 0, 1], port));
        plan.targets = vec![Target::tcp(addr(1), "a"), Target::tcp(addr(2), "a")];
        plan.groups[1].targets = vec![Target::tcp(addr(3), "b")];
        let cells = Cells::new(&plan);
        assert_eq!(cells.targets, ["a", "b"]);
        let cell = |group, target, clients| Cell { group, target, clients };
        assert_eq!(cells.infos, [cell(0, 0, 3), cell(1, 1, 1)]);
        assert_eq!(
            [0, 1, 2, 3].map(|client| cells.cell_of(ClientIndex::new(client))),
            [0, 0, 0, 1]
        );
        plan.targets[1].name = "c".into();
        assert_eq!(Cells::new(&plan).infos, [cell(0, 0, 2), cell(0, 1, 1), cell(1, 2, 1)]);
    }
}
