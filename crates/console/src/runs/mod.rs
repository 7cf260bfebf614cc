//! The runs of a folder: a row of each, held in memory and in a file, made from the directories,
//! which stay the truth.

mod index;
mod index_file;
mod notes;
mod query;
mod row;
mod trash;

pub(crate) use index::{RunChange, RunIndex};
pub(crate) use notes::{NotesChange, RunNotes};
pub(crate) use query::{RunQuery, SortKey};
pub(crate) use row::{RunRow, record_problem};
pub(crate) use trash::{TrashError, list as list_trash, purge, restore, to_trash};
