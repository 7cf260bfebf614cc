//! What lifts limits permanently, as a file for `/etc/sysctl.d`.

use std::collections::BTreeMap;

use super::Row;

/// How lines begin that have the values before.
const WAS: &str = "# was: ";

/// The settings that limit something on this machine, with what lifts that; the values before are
/// in comments. `None` where nothing limits that such a file could set.
pub fn sysctl_fragment(rows: &[Row], purpose: &str) -> Option<String> {
    let mut settings: BTreeMap<&str, (&Row, &str)> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.limits && row.host.is_none()) {
        let Some(wanted) = row.sysctl.as_deref() else { continue };
        let known = settings.get(row.name).map_or(0, |(_, wanted)| largest(wanted));
        if largest(wanted) >= known {
            settings.insert(row.name, (row, wanted));
        }
    }
    if settings.is_empty() {
        return None;
    }
    let mut text = format!(
        "# By tacho doctor, for {}.\n# Apply it now: sysctl -p FILE; at each start: put it into \
         /etc/sysctl.d.\n# Undo it: sed -n 's/^{WAS}//p' FILE | sysctl -p -\n",
        one_line(purpose)
    );
    for (name, (row, wanted)) in settings {
        let before = row.current.as_deref().map(one_line).unwrap_or_default();
        text.push_str(&format!(
            "\n# {}\n{WAS}{name} = {before}\n{name} = {wanted}\n",
            one_line(&row.why)
        ));
    }
    let others = rows.iter().filter(|row| row.limits && row.host.is_none() && row.sysctl.is_none());
    for command in others.filter_map(|row| row.command.as_deref()) {
        text.push_str(&format!("\n# Not a setting of this file: {}\n", one_line(command)));
    }
    Some(text)
}

/// Nothing may begin a line of its own.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn largest(wanted: &str) -> u64 {
    wanted.split_whitespace().filter_map(|word| word.parse().ok()).max().unwrap_or(0)
}
