//! What the system tells in text files, read below a root so that tests have their own.

use std::path::Path;

/// Reads text files below a root.
pub(crate) struct Files<'a>(pub(crate) &'a Path);

impl Files<'_> {
    /// All of a file; `None` where it cannot be read.
    pub(crate) fn text(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.0.join(path)).ok()
    }

    /// The first line, its words one blank apart; `None` where there are none.
    pub(crate) fn line(&self, path: &str) -> Option<String> {
        let text = self.text(path)?;
        let line = text.lines().next()?.split_whitespace().collect::<Vec<_>>().join(" ");
        (!line.is_empty()).then_some(line)
    }

    /// The first line as a number.
    pub(crate) fn number(&self, path: &str) -> Option<u64> {
        self.line(path)?.parse().ok()
    }

    /// A setting of the kernel, as `sysctl` names it.
    pub(crate) fn sysctl(&self, name: &str) -> Option<String> {
        self.line(&format!("proc/sys/{}", name.replace('.', "/")))
    }

    /// The value of `key<separator>value` in a file of such lines.
    pub(crate) fn value(&self, path: &str, key: &str, separator: char) -> Option<String> {
        let text = self.text(path)?;
        let value = text.lines().find_map(|line| {
            let (name, value) = line.split_once(separator)?;
            (name.trim() == key).then(|| value.trim().trim_matches('"').to_owned())
        })?;
        (!value.is_empty()).then_some(value)
    }

    /// The CPU model. Arm has no name of one; the part number is what there is.
    pub(crate) fn cpu_model(&self) -> Option<String> {
        let of = |key| self.value("proc/cpuinfo", key, ':');
        of("model name").or_else(|| of("CPU part"))
    }

    /// Names in a folder, sorted; none where it does not exist.
    pub(crate) fn names(&self, path: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.join(path)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort_unstable();
        names
    }
}
