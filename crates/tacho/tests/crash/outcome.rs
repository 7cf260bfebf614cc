//! Result of a run.

use tacho_testkit::DiskFaultsSeen;

use crate::ledger::{Findings, Kind, Ledger, Totals};

#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    seed: u64,
    pub(crate) kills: u64,
    /// Kills before the broker served any client.
    pub(crate) kills_starting: u64,
    /// Restarts on a backup that was made right before the kill.
    pub(crate) restored: u64,
    /// Restarts with a different number of shards.
    pub(crate) reshaped: u64,
    /// From the start of the process to the first CONNACK.
    pub(crate) restarts_ms: Vec<u64>,
    pub(crate) totals: Totals,
    pub(crate) findings: Findings,
    /// What went wrong with the disk, if it is a bad one.
    pub(crate) disk: Option<DiskFaultsSeen>,
}

impl Outcome {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            seed,
            kills: 0,
            kills_starting: 0,
            restored: 0,
            reshaped: 0,
            restarts_ms: Vec::new(),
            totals: Totals::default(),
            findings: Findings::default(),
            disk: None,
        }
    }

    pub(crate) fn conclude(&mut self, ledger: &Ledger, disk: Option<DiskFaultsSeen>) {
        self.disk = disk;
        self.totals = ledger.totals;
        self.findings = ledger.findings.clone();
    }

    pub(crate) fn restart_ms_median(&self) -> u64 {
        let mut sorted = self.restarts_ms.clone();
        sorted.sort_unstable();
        sorted.get(sorted.len() / 2).copied().unwrap_or(0)
    }

    /// Prints one line of progress.
    pub(crate) fn say_progress(&self, ledger: &Ledger) {
        if self.kills.is_multiple_of(10) {
            let Totals { acknowledged, delivered, .. } = ledger.totals;
            let wrong = ledger.findings.total();
            eprintln!(
                "{:>5} kills, {acknowledged} acknowledged, {delivered} delivered, {wrong} findings",
                self.kills
            );
        }
    }

    /// The figures as a table.
    pub(crate) fn table(&self) -> String {
        let Totals { published, acknowledged, delivered, again_qos_1, .. } = self.totals;
        let Totals { wills_seen, retained_checked, audits, .. } = self.totals;
        let wrong = |kind| self.findings.count(kind).to_string();
        let median = self.restart_ms_median();
        let max = self.restarts_ms.iter().max().copied().unwrap_or(0);
        let disk = self.disk.map_or_else(
            || "none".to_owned(),
            |DiskFaultsSeen { sync_errors, short, .. }| {
                format!("{sync_errors} syncs failed, {short} writes were short")
            },
        );
        let rows = [
            ("seed", self.seed.to_string()),
            ("kills", format!("{}, {} of them during a start", self.kills, self.kills_starting)),
            ("restarts from a backup", self.restored.to_string()),
            ("restarts, resharded", self.reshaped.to_string()),
            ("restart to serving, ms", format!("median {median}, max {max}")),
            ("faults of the disk", disk),
            ("audits", audits.to_string()),
            ("messages published", published.to_string()),
            ("messages acknowledged", acknowledged.to_string()),
            ("messages delivered", delivered.to_string()),
            ("duplicates at QoS 1", again_qos_1.to_string()),
            ("wills published", wills_seen.to_string()),
            ("retained topics checked", retained_checked.to_string()),
            ("acknowledged and lost", wrong(Kind::Lost)),
            ("duplicates at QoS 2, QoS 0", wrong(Kind::Twice)),
            ("out of order", wrong(Kind::Disorder)),
            ("damaged", wrong(Kind::Damaged)),
            ("without a subscription", wrong(Kind::Unasked)),
            ("refused", wrong(Kind::Refused)),
            ("sessions lost", wrong(Kind::Session)),
            ("wrong retained messages", wrong(Kind::Retained)),
            ("wrong wills", wrong(Kind::Will)),
            ("broker failures", wrong(Kind::Broker)),
        ];
        rows.map(|(name, value)| format!("{name:<26} {value}\n")).concat()
    }
}
