//! Where programs of tests have their sockets.

use std::path::PathBuf;

/// A folder for `XDG_RUNTIME_DIR` of brokers that tests start, in the target folder. In the folder
/// of the system the sockets of killed ones would stay behind, and those that run would be in the
/// way of `tacho ctl`, which takes a single one.
pub fn runtime_folder() -> PathBuf {
    // A test is in `target/debug/deps`.
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().unwrap().parent().unwrap().join("run");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}
