//! What a broker that runs as a process says on standard error.

use std::io;
use std::net::SocketAddr;

/// The next line of a log that has these words.
pub fn line_with(log: &mut impl Iterator<Item = io::Result<String>>, words: &str) -> String {
    let mut seen = Vec::new();
    for line in log {
        let line = line.unwrap();
        if line.contains(words) {
            return line;
        }
        seen.push(line);
    }
    panic!("no {words:?} in {seen:#?}");
}

/// The first address of the line in which a broker says where it listens.
pub fn listening_address(line: &str) -> SocketAddr {
    let address = line.split("listening on ").nth(1).and_then(|rest| rest.split(' ').next());
    address.unwrap().trim_end_matches(',').parse().unwrap()
}
