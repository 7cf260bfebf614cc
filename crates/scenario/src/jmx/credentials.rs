//! Client ids, user names and passwords from files, as a scenario has them.

use std::collections::BTreeMap;

use super::data_set::{COLUMNS, DataSet, Share};
use super::group::ConnectSampler;
use super::quoted::quoted;
use super::value::Value;

/// Of files whose rows all threads share, by the number of the data set: rows that are taken.
pub(super) type RowsTaken = BTreeMap<usize, u64>;

/// The lines of a group of so many threads on all machines together; none when nothing comes from a
/// file.
///
/// # Errors
/// A sentence, when a scenario cannot have it so.
pub(super) fn lines(
    connect: &ConnectSampler,
    threads: u64,
    machines: u32,
    sets: &[DataSet],
    taken: &mut RowsTaken,
) -> Result<Vec<String>, &'static str> {
    let values = [&connect.client_id, &connect.username, &connect.password];
    let mut used = values.iter().filter_map(|value| value.column());
    let Some((_, number)) = used.next() else { return Ok(Vec::new()) };
    if used.any(|(_, other)| other != number) {
        return Err("client ids, user names and passwords must come from one file");
    }
    if connect.connections > 1 {
        return Err("a thread with several connections has only one row of the file");
    }
    // Invariant: columns name data sets that were defined.
    let Some(set) = sets.get(number) else { return Ok(Vec::new()) };
    // The scenario's name for a column defines its purpose.
    let role = |column: &String| {
        let has_name = |value: &&Value| value.column().is_some_and(|(name, _)| name == column);
        values.iter().position(has_name).map(|role| COLUMNS[role])
    };
    let roles: Vec<Option<&str>> = set.columns.iter().map(role).collect();
    let one = |name: &str| roles.iter().filter(|role| **role == Some(name)).count() == 1;
    let mut wanted = COLUMNS.iter().zip(values).filter(|(_, value)| value.column().is_some());
    if !wanted.all(|(name, _)| one(name)) {
        return Err("one column cannot be used as two of client id, user name and password");
    }
    let first = match set.share {
        Share::All => {
            let taken = taken.entry(number).or_default();
            let first = *taken;
            // Where each machine has rows of its own, it takes those of its own threads only.
            let takers = match set.per_machine {
                Some(_) => threads.div_ceil(u64::from(machines.max(1))),
                None => threads,
            };
            *taken += takers * u64::from(set.every);
            first
        }
        Share::Group | Share::Thread => 0,
    };
    let mut lines = vec![format!("credentials = {}", quoted(&set.file))];
    let rows = rows(set, &roles, first);
    if !rows.is_empty() {
        lines.push(format!("rows = {{ {} }}", rows.join(", ")));
    }
    Ok(lines)
}

/// What a scenario must be told about a file: nothing where its first line calls the columns what
/// they are for and each client takes the next row.
fn rows(set: &DataSet, roles: &[Option<&str>], first: u64) -> Vec<String> {
    let mut rows = Vec::new();
    let as_named = |(column, role): (&String, &Option<&str>)| match role {
        Some(role) => column == role,
        None => !COLUMNS.contains(&column.as_str()),
    };
    if !set.has_head || !set.columns.iter().zip(roles).all(as_named) {
        let name = |(at, role): (usize, &Option<&str>)| match role {
            Some(role) => quoted(role),
            None => quoted(&format!("column{}", at + 1)),
        };
        let names: Vec<String> = roles.iter().enumerate().map(name).collect();
        rows.push(format!("columns = [{}]", names.join(", ")));
        if set.has_head {
            rows.push("skip = 1".to_owned());
        }
    }
    if set.delimiter != ',' {
        rows.push(format!("delimiter = {}", quoted(&set.delimiter.to_string())));
    }
    if first > 0 {
        rows.push(format!("first = {first}"));
    }
    let every = if set.share == Share::Thread { 0 } else { set.every };
    if every != 1 {
        rows.push(format!("every = {every}"));
    }
    if let Some(per_machine) = set.per_machine {
        rows.push(format!("per_machine = {per_machine}"));
    }
    if set.recycle {
        rows.push("recycle = true".to_owned());
    }
    rows
}
