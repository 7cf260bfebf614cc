//! The processes that a process started, directly or not.

use rustix::process::Pid;

/// The living descendants of `root`. On systems without Linux's `/proc` there is no list.
pub(crate) fn descendants(root: Pid) -> Option<Vec<Pid>> {
    let entries = std::fs::read_dir("/proc").ok()?;
    let mut parents = Vec::new();
    for entry in entries.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        // A process may end meanwhile.
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        if let Some(parent) = living_parent(&stat) {
            parents.push((pid, parent));
        }
    }
    let root = root.as_raw_nonzero().get();
    parents.iter().any(|(pid, _)| *pid == root).then(|| below(root, &parents))
}

/// The parent in a line of `/proc/PID/stat`; `None` for a process that has ended.
fn living_parent(stat: &str) -> Option<i32> {
    // The name of the program, in parentheses, may itself have parentheses and blanks.
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    (!matches!(state, "Z" | "X")).then_some(parent)
}

fn below(root: i32, parents: &[(i32, i32)]) -> Vec<Pid> {
    let mut found = vec![root];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        next += 1;
        let children = parents.iter().filter(|(pid, of)| *of == parent && *pid != root);
        found.extend(children.map(|(pid, _)| *pid));
    }
    found.into_iter().skip(1).filter_map(Pid::from_raw).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parent_is_read_behind_any_name() {
        assert_eq!(living_parent("7 (a) S) (b) S 3 7 7 0 -1"), Some(3));
        assert_eq!(living_parent("7 (sleep) Z 3 7 7 0 -1"), None, "it has ended");
        assert_eq!(living_parent("7 (sleep"), None);
        assert_eq!(living_parent(""), None);
    }

    #[test]
    fn children_of_children_belong_to_it_and_others_do_not() {
        let parents = [(1, 0), (5, 1), (9, 7), (6, 5), (7, 6), (8, 1)];
        let found: Vec<i32> =
            below(5, &parents).iter().map(|pid| pid.as_raw_nonzero().get()).collect();
        assert_eq!(found, [6, 7, 9]);
        assert!(below(8, &parents).is_empty());
    }
}
