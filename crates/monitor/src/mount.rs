//! Mounted file systems, from `mountinfo`.

use std::path::PathBuf;

/// A line of `mountinfo`.
#[derive(Clone, Debug)]
pub(crate) struct Mount {
    /// Major and minor number of its device.
    pub(crate) number: String,
    pub(crate) point: PathBuf,
    pub(crate) file_system: String,
    pub(crate) device: String,
}

/// The lines of a `mountinfo` that can be read.
pub(crate) fn mounts(text: &str) -> Vec<Mount> {
    text.lines().filter_map(Mount::parse).collect()
}

impl Mount {
    /// `36 35 98:0 /root /mount/point options optional... - type device options`.
    fn parse(line: &str) -> Option<Self> {
        let (mount, system) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(2);
        let number = mount.next()?;
        let point = mount.nth(1)?;
        let mut system = system.split(' ');
        let (file_system, device) = (system.next()?, system.next()?);
        let number_is_plain = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b':');
        number_is_plain.then(|| Self {
            number: number.to_owned(),
            point: PathBuf::from(unescaped(point)),
            file_system: file_system.to_owned(),
            device: unescaped(device),
        })
    }
}

/// The kernel writes blanks as `\040`.
fn unescaped(text: &str) -> String {
    text.replace("\\040", " ")
}
