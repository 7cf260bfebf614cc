//! Suites: many runs under one name, as published reports have them.

/// A published report as a sequence of runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suite {
    /// The name to run it by.
    pub name: &'static str,
    /// One sentence.
    pub description: &'static str,
    /// Its curves and rows, in the order of the report.
    pub series: Vec<SuiteSeries>,
}

/// One curve of a figure, or one row of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuiteSeries {
    /// Short name, unique within the suite.
    pub name: String,
    /// For people.
    pub label: String,
    /// Series with the same figure are overlaid in one chart.
    pub figure: String,
    /// A built-in scenario, or a name of the grammar.
    pub scenario: String,
    /// The variable that is stepped; `None` for a row that stands by itself.
    pub variable: Option<String>,
    /// Its runs, in order.
    pub points: Vec<SuitePoint>,
    /// Under which name the published results of this series are kept.
    pub published: Option<&'static str>,
}

/// One run of a series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuitePoint {
    /// For people, unique within the series.
    pub label: String,
    /// Values of the scenario's variables.
    pub vars: Vec<(String, String)>,
}
