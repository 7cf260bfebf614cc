//! Records for people and for CI: terminal text, HTML, SVG, Markdown and JUnit, in English and
//! Chinese.
//!
//! Everything that is shown is computed from a record; nothing here decides what a run is worth.

mod actions;
mod agents;
pub mod axis;
mod badge;
mod brokers;
mod campaign;
mod capacity;
pub mod chart;
mod chart_data;
mod charts;
mod columns;
mod comparison;
mod comparison_junit;
mod comparison_text;
mod course;
mod data;
mod document;
mod elements;
mod grid;
mod grouped;
mod hosts;
mod html;
mod intervals;
mod junit;
mod ladder;
mod lang;
mod logins;
mod many;
mod markdown;
mod over_time;
mod page;
mod phrases;
mod repeats;
mod row_graphs;
mod services;
mod single;
mod steps_table;
mod surroundings;
pub mod svg;
mod tables;
mod tell;
#[cfg(test)]
mod tests;
mod text;
mod words;
mod write;

pub use badge::{badge, comparison_badge};
pub use campaign::{campaign_text, capacity_text, recommendation_text, step_line};
pub use comparison::comparison_html;
pub use comparison_junit::comparison_junit;
pub use comparison_text::{comparison_markdown, comparison_text};
pub use data::ReportData;
pub use document::{UPLOT, with_files};
pub use elements::escape;
pub use html::html;
pub use junit::junit;
pub use lang::Lang;
pub use markdown::markdown;
pub use phrases::{Said, said};
pub use tell::{tell, tell_comparison};
pub use text::summary_text;
pub use write::{write_comparison, write_page, write_record, write_run};
