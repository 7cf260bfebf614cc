//! Whether what another process sent fits the run: positions that this process would use as
//! indexes, and times that it would add to.

use std::ops::Range;

use crate::context::RunContext;
use crate::events::Gap;
use crate::mail::{Enter, Mail, Order, Report, ReportBody, Task};
use crate::plan::{ClientIndex, Receiver, StreamIndex};
use crate::verifier::{Books, StreamEnds};

/// Far beyond any clock, and far from the end of the number's range.
const TIME_NS_MAX: u64 = 1 << 62;

/// Whether a report of a share with these threads fits.
pub(crate) fn report(report: &Report, context: &RunContext, threads: &Range<usize>) -> bool {
    if !threads.contains(&report.thread) {
        return false;
    }
    let cells = context.cells.len();
    let is_client = |client: ClientIndex| client.index() < context.plan.client_count();
    let is_stream = |stream: StreamIndex| stream.index() < context.homes.len();
    match &report.body {
        ReportBody::Interval(interval) => {
            let is_action = |(action, _): &(usize, _)| *action < context.plan.actions.len();
            interval.sample.cells.len() == cells
                && interval.index <= context.plan.phases.len()
                && interval.start_ns < TIME_NS_MAX
                && interval.len_ns < TIME_NS_MAX
                && interval.actions.iter().all(is_action)
        }
        ReportBody::Failed { client, .. } | ReportBody::Interrupted { client, .. } => {
            is_client(*client)
        }
        ReportBody::ActionStarted { action, .. } => (*action as usize) < context.plan.actions.len(),
        ReportBody::Status(status) => status.unprobed.is_none_or(is_stream),
        ReportBody::Ends(ends) => {
            ends.iter().all(|(stream, end)| is_stream(*stream) && is_ordered(end))
        }
        ReportBody::Books(books) => books_fit(books, context),
        ReportBody::Forward { thread, mail } => {
            *thread < context.plan.threads && mail_fits(mail, context, *thread)
        }
        ReportBody::Ended(_) | ReportBody::Done { .. } | ReportBody::Broken(_) => true,
        // Only the controller's own threads report these.
        ReportBody::Rtt(_) | ReportBody::RttFailed(_) | ReportBody::Lost(_) => false,
    }
}

/// Whether an order to a share with these threads fits.
pub(crate) fn order(order: &Order, context: &RunContext, threads: &Range<usize>) -> bool {
    let mut to = match order.thread {
        Some(thread) if threads.contains(&thread) => thread..thread + 1,
        Some(_) => return false,
        None => threads.clone(),
    };
    to.all(|thread| mail_fits(&order.mail, context, thread))
}

fn mail_fits(mail: &Mail, context: &RunContext, thread: usize) -> bool {
    let streams = || context.homes.iter().filter(|home| usize::from(home.thread) == thread);
    match mail {
        Mail::Enter(Enter { index, start_ns, task }) => {
            let is_load = match *task {
                Task::Load { end_ns, scale, .. } => {
                    end_ns < TIME_NS_MAX && scale.num > 0 && scale.den > 0
                }
                _ => true,
            };
            *index <= context.plan.phases.len() && *start_ns < TIME_NS_MAX && is_load
        }
        Mail::Cut(at_ns) => *at_ns < TIME_NS_MAX,
        Mail::Settle(ends) => ends.len() == context.homes.len() && ends.iter().all(is_ordered),
        Mail::Credit { stream, .. } | Mail::Probed { stream, .. } => {
            (*stream as usize) < streams().count()
        }
        Mail::GiveUp { .. } | Mail::ReportStatus | Mail::ReportEnds | Mail::Stop => true,
    }
}

fn is_ordered(ends: &StreamEnds) -> bool {
    ends.from <= ends.window_from
        && ends.window_from <= ends.window_to
        && ends.window_to <= ends.to
        && ends.to < TIME_NS_MAX
        && ends.unacknowledged.iter().all(|run| run.start <= run.end)
}

fn books_fit(books: &Books, context: &RunContext) -> bool {
    let groups = context.plan.shared_groups().len();
    let clients = context.plan.client_count();
    let is_receiver = |receiver: &Receiver| match receiver {
        Receiver::Client(client) => client.index() < clients,
        Receiver::Shared(group) => (*group as usize) < groups,
    };
    let is_gap = |gap: &Gap| gap.stream.index() < context.homes.len() && is_receiver(&gap.receiver);
    books.cells.len() <= context.cells.len()
        && books.actions.len() <= context.plan.actions.len()
        && books.gaps.iter().all(is_gap)
        && books.members.iter().all(|member| (member.group as usize) < groups)
        && books.shared.iter().all(|book| {
            book.stream.index() < context.homes.len()
                && book.cell < context.cells.len()
                && is_receiver(&book.receiver)
        })
}
