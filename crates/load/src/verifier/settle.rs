//! Closes the books of a window: compares messages sent with messages received.

use std::collections::HashSet;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use tacho_codec::QoS;

use super::Verifier;
use super::shared::Receipts;
use super::tracker::{Absence, Hole, Mark};
use crate::events::{ActionTotals, Delivery, Gap, Totals, Violations};
use crate::plan::{ClientIndex, DeclaredLoss, Group, Receiver, StreamIndex};

/// The messages of a stream since the books were last closed: `from..to`, of which
/// `window_from..window_to` were intended for the measured window.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StreamEnds {
    pub(crate) from: u64,
    pub(crate) window_from: u64,
    pub(crate) window_to: u64,
    pub(crate) to: u64,
    /// Intended time of the last one.
    pub(crate) last_ns: u64,
    /// The publisher's connection failed, or some of its messages were refused: unacknowledged
    /// messages may be lost.
    pub(crate) failed: bool,
    /// Runs of messages of QoS 1 and 2 without their last acknowledgement, in order.
    pub(crate) unacknowledged: Vec<Range<u64>>,
    /// The publisher's thread is gone, and what it sent is unknown: the stream is in no books.
    pub(crate) unknown: bool,
}

impl StreamEnds {
    /// Splits the lost messages of a hole into those outside and inside the window.
    fn split(&self, hole: Hole) -> [u64; 2] {
        if hole.lost < hole.to - hole.from {
            // A merged hole spans the start of the window by less than one original hole.
            if hole.to <= self.window_from || hole.from >= self.window_to {
                return [hole.lost, 0];
            }
            let outside = hole.lost.min(self.window_from.saturating_sub(hole.from));
            return [outside, hole.lost - outside];
        }
        let inside = hole.to.min(self.window_to).saturating_sub(hole.from.max(self.window_from));
        [hole.lost - inside, inside]
    }

    /// Lower bound of the acknowledged messages in a hole: merged holes have forgotten which
    /// messages are missing.
    fn acknowledged(&self, hole: &Hole) -> u64 {
        let first = self.unacknowledged.partition_point(|run| run.end <= hole.from);
        let behind = self.unacknowledged[first..].iter().take_while(|run| run.start < hole.to);
        let open: u64 = behind.map(|run| run.end.min(hole.to) - run.start.max(hole.from)).sum();
        hole.lost.saturating_sub(open)
    }

    const fn expected(&self) -> [u64; 2] {
        let inside = self.window_to - self.window_from;
        [self.to - self.from - inside, inside]
    }
}

/// Closed books of one thread, or the sum of several.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Books {
    pub(crate) outside: Delivery,
    pub(crate) window: Delivery,
    pub(crate) violations: Violations,
    /// At the end of their stream at QoS 1 or 2: lost or not delivered yet.
    pub(crate) undelivered: u64,
    /// Lost at QoS 1 or 2 although acknowledged to their publisher.
    pub(crate) acknowledged_lost: u64,
    /// At the end of their stream, although acknowledged: lost or not delivered yet.
    pub(crate) acknowledged_undelivered: u64,
    pub(crate) gaps: Vec<Gap>,
    pub(crate) gaps_cut: u64,
    pub(crate) received_min_max: Option<(u64, u64)>,
    pub(crate) shared: Vec<SharedBook>,
    /// The window, by cell.
    pub(crate) cells: Vec<Delivery>,
    /// What the members of shared groups received in the window.
    pub(crate) members: Vec<MemberCount>,
    /// Results of actions, by action.
    pub(crate) actions: Vec<ActionTotals>,
}

/// Messages that one member of a shared group received.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct MemberCount {
    /// Number of the shared group.
    pub(crate) group: u32,
    pub(crate) client: ClientIndex,
    pub(crate) count: u64,
}

/// What the members of a shared group on one thread received of one stream.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SharedBook {
    pub(crate) receiver: Receiver,
    /// Cell of its first member here.
    pub(crate) cell: usize,
    pub(crate) first_member: ClientIndex,
    pub(crate) stream: StreamIndex,
    #[serde(with = "crate::wire::qos")]
    pub(crate) qos: QoS,
    pub(crate) failed: bool,
    pub(crate) receipts: Receipts,
}

impl Books {
    /// Adds the books of another thread.
    pub(crate) fn add(&mut self, other: Self) {
        self.outside.add(&other.outside);
        self.window.add(&other.window);
        self.violations.add(&other.violations);
        self.undelivered += other.undelivered;
        self.acknowledged_lost += other.acknowledged_lost;
        self.acknowledged_undelivered += other.acknowledged_undelivered;
        self.gaps_cut += other.gaps_cut;
        for gap in other.gaps {
            self.push_gap(gap);
        }
        self.received_min_max = match (self.received_min_max, other.received_min_max) {
            (Some((min, max)), Some((other_min, other_max))) => {
                Some((min.min(other_min), max.max(other_max)))
            }
            (one, other) => one.or(other),
        };
        self.shared.extend(other.shared);
        self.cells.resize(self.cells.len().max(other.cells.len()), Delivery::default());
        for (mine, theirs) in self.cells.iter_mut().zip(&other.cells) {
            mine.add(theirs);
        }
        self.members.extend(other.members);
        if self.actions.len() < other.actions.len() {
            self.actions.resize_with(other.actions.len(), ActionTotals::default);
        }
        for (mine, theirs) in self.actions.iter_mut().zip(&other.actions) {
            mine.add(theirs);
        }
    }

    fn push_gap(&mut self, gap: Gap) {
        if self.gaps.len() < Totals::GAPS_MAX {
            self.gaps.push(gap);
        } else {
            self.gaps_cut += 1;
        }
    }

    /// Enters one route: its expected deliveries minus its holes.
    fn enter(&mut self, route: &RouteEnd<'_>, holes: impl FnOnce(&mut dyn FnMut(Hole))) {
        let expected = route.ends.expected();
        let (mut lost, mut tail, mut declared) = ([0, 0], [0, 0], [0, 0]);
        holes(&mut |hole| {
            let parts = route.ends.split(hole);
            let is_tail = hole.to == route.ends.to;
            let is_declared = route.policy.declares(route.qos, hole.mark.absence);
            for at in [0, 1] {
                lost[at] += parts[at];
                tail[at] += if is_tail { parts[at] } else { 0 };
                declared[at] += if is_declared { parts[at] } else { 0 };
            }
            let acknowledged = route.acknowledged(&hole);
            if !is_declared && route.is_judged(&hole) {
                // The last messages of a failed publisher may never have reached the broker, and
                // refused messages were not accepted.
                let broken = if route.ends.failed { acknowledged } else { hole.lost };
                let (lost, acknowledged_lost) = match is_tail {
                    true => (&mut self.undelivered, &mut self.acknowledged_undelivered),
                    false => (&mut self.violations.lost, &mut self.acknowledged_lost),
                };
                *lost += broken;
                *acknowledged_lost += acknowledged;
            }
            self.push_gap(Gap {
                stream: route.stream,
                receiver: route.receiver,
                first_seq: hole.from,
                count: hole.lost,
                span: hole.to - hole.from,
                declared: is_declared,
                acknowledged,
            });
        });
        let parts =
            [(0, &mut self.outside), (1, &mut self.window), (1, &mut self.cells[route.cell])];
        for (at, delivery) in parts {
            delivery.expected += expected[at];
            delivery.lost += lost[at];
            delivery.declared_lost += declared[at];
            delivery.undelivered += tail[at];
            delivery.received += expected[at].saturating_sub(lost[at]);
        }
    }
}

/// The plan's declarations for messages published while a receiver is absent.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Policy {
    /// The broker queues messages of QoS 0, too.
    queues_qos0: bool,
    /// The broker may lose messages of any QoS.
    queue_full: bool,
}

impl Policy {
    pub(super) fn from_group(group: &Group) -> Self {
        Self {
            queues_qos0: group.offline.is_some_and(|offline| offline.queues_qos0),
            queue_full: group.expect_losses == Some(DeclaredLoss::OfflineQueueFull),
        }
    }

    /// Whether the loss of messages published during such an absence is declared.
    fn declares(&self, qos: QoS, absence: Absence) -> bool {
        match absence {
            Absence::None => false,
            Absence::Kept => self.queue_full || qos == QoS::AtMostOnce && !self.queues_qos0,
            Absence::Ended => true,
        }
    }
}

struct RouteEnd<'a> {
    receiver: Receiver,
    cell: usize,
    stream: StreamIndex,
    qos: QoS,
    failed: bool,
    policy: Policy,
    ends: &'a StreamEnds,
}

impl RouteEnd<'_> {
    /// Whether the loss of these messages is a violation, unless it is declared.
    fn is_judged(&self, hole: &Hole) -> bool {
        let away = hole.mark.absence == Absence::Kept;
        let promised = self.qos > QoS::AtMostOnce || away && self.policy.queues_qos0;
        promised && !self.failed
    }

    /// Number of these messages that were acknowledged to the publisher.
    fn acknowledged(&self, hole: &Hole) -> u64 {
        if self.qos == QoS::AtMostOnce { 0 } else { self.ends.acknowledged(hole) }
    }
}

impl Verifier {
    /// Closes the books; `ends` has every stream of the plan. Shared groups are returned as
    /// receipts for [`settle_shared`], because they may have members on other threads, too.
    pub(crate) fn settle(&mut self, ends: &[StreamEnds]) -> Books {
        let mut books = Books::default();
        for tally in &mut self.tallies {
            let [outside, window] = std::mem::take(tally);
            books.outside.add(&outside.delivery);
            books.window.add(&window.delivery);
            books.violations.add(&outside.violations);
            books.violations.add(&window.violations);
            books.cells.push(window.delivery);
        }
        for client in &mut self.clients {
            for entry in &mut self.entries[client.routes.range()] {
                let ends = &ends[entry.stream.index()];
                let route = RouteEnd {
                    receiver: client.routes.receiver,
                    cell: client.cell,
                    stream: entry.stream,
                    qos: entry.qos,
                    // Messages queued for an absent client are no violation yet.
                    failed: client.failed
                        || client.is_away
                        || self.streams.owes_answers(entry.stream),
                    policy: client.policy,
                    ends,
                };
                let away = client.is_away || ends.last_ns < client.back_ns;
                let absence = if away { entry.absence } else { Absence::None };
                let tail = Mark { inside: false, absence };
                if ends.unknown {
                    entry.tracker.settle(ends.to, tail, |_| {});
                    continue;
                }
                books.enter(&route, |lost| entry.tracker.settle(ends.to, tail, lost));
            }
            if client.receives {
                let received = std::mem::take(&mut client.received_in_window);
                let (min, max) = books.received_min_max.unwrap_or((received, received));
                books.received_min_max = Some((min.min(received), max.max(received)));
            }
        }
        for client in &mut self.clients {
            for group in &mut client.groups {
                let count = std::mem::take(&mut group.received_in_window);
                if let Receiver::Shared(number) = self.shared[group.table as usize].receiver {
                    books.members.push(MemberCount { group: number, client: client.index, count });
                }
            }
        }
        for (index, table) in (0u32..).zip(&self.shared) {
            let mut members = self
                .clients
                .iter()
                .filter(|client| client.groups.iter().any(|group| group.table == index));
            // Invariant: a table is created for its first member.
            let first = members.clone().next().expect("a group has members");
            let failed = members.any(|client| client.failed || client.has_left);
            for entry in &mut self.shared_entries[table.range()] {
                books.shared.push(SharedBook {
                    receiver: table.receiver,
                    cell: first.cell,
                    first_member: first.index,
                    stream: entry.stream,
                    qos: entry.qos,
                    failed,
                    receipts: entry.tracker.settle(ends[entry.stream.index()].to),
                });
            }
        }
        books
    }
}

/// Unites the receipts of shared groups from all threads, and enters them into the books; those
/// of groups that lost a member, or of streams of unknown ends, say nothing.
pub(crate) fn settle_shared(
    books: &mut Books,
    ends: &[StreamEnds],
    lost_groups: &HashSet<Receiver>,
) {
    let mut shared = std::mem::take(&mut books.shared);
    shared
        .retain(|book| !ends[book.stream.index()].unknown && !lost_groups.contains(&book.receiver));
    shared.sort_by_key(|book| (book.receiver, book.stream, book.first_member));
    let same = |a: &SharedBook, b: &SharedBook| (a.receiver, a.stream) == (b.receiver, b.stream);
    for parts in shared.chunk_by_mut(same) {
        let [first, others @ ..] = parts else { continue };
        let ends = &ends[first.stream.index()];
        let mut duplicates = [0, 0];
        for other in others {
            first.qos = first.qos.min(other.qos);
            first.failed |= other.failed;
            first.receipts.unite(&other.receipts, |seq| {
                let inside = (ends.window_from..ends.window_to).contains(&seq);
                duplicates[usize::from(inside)] += 1;
            });
        }
        books.outside.duplicates += duplicates[0];
        books.window.duplicates += duplicates[1];
        books.cells[first.cell].duplicates += duplicates[1];
        if first.qos != QoS::AtLeastOnce && !first.failed {
            books.violations.duplicates += duplicates[0] + duplicates[1];
        }
        let route = RouteEnd {
            receiver: first.receiver,
            cell: first.cell,
            stream: first.stream,
            qos: first.qos,
            failed: first.failed,
            policy: Policy::default(),
            ends,
        };
        books.enter(&route, |lost| first.receipts.holes(ends.from, ends.to, lost));
    }
}
