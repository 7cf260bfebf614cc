//! The dashboards against the types that Grafana publishes.

use std::fmt::Write as _;
use std::fs;

use serde_json::Value;

use super::board::{Board, list};
use crate::Verdict;
use crate::process::{Peer, Running, peers_dir};

/// Annotations have members of their data source and, for Prometheus, formats, of which the
/// published type does not know.
const HEAD: &str = "import type { AnnotationQuery, Dashboard, DataQuery } from '@grafana/schema';\n\
    type Formats = { titleFormat?: string; textFormat?: string };\n\
    const note = <Q extends DataQuery>(one: AnnotationQuery<Q> & Formats): AnnotationQuery => one;\n";

/// Each is a literal of the type, so that unknown and mistyped members are errors.
pub(super) fn all_are() -> Verdict {
    let mut source = HEAD.to_owned();
    let boards = Board::all_of("prometheus")?.into_iter().chain(Board::all_of("influxdb")?);
    for (number, mut board) in boards.enumerate() {
        let notes = board.value["annotations"]["list"].take();
        let notes: Vec<String> = list(&notes).iter().map(|one| format!("note({one})")).collect();
        board.value["annotations"]["list"] = Value::from("the notes");
        let literal = board.value.to_string();
        let literal = literal.replace("\"the notes\"", &format!("[{}]", notes.join(", ")));
        let _ = writeln!(source, "// {}", board.name);
        let _ = writeln!(source, "export const board{number}: Dashboard = {literal};");
    }
    // Beside the library, so that it is found.
    let folder = tempfile::tempdir_in(peers_dir())?;
    let file = folder.path().join("dashboards.ts");
    fs::write(&file, source)?;
    let mut command = Peer::GrafanaSchema.command()?;
    command.arg(peers_dir().join("node_modules/typescript/bin/tsc"));
    command.args(["--noEmit", "--strict", "--skipLibCheck", "--moduleResolution", "bundler"]);
    command.args(["--module", "esnext", "--target", "es2022"]).arg(&file);
    Running::start(command)?.succeed().map(drop)
}
