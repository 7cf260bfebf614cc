//! What the generator can do on this machine, measured against a responder that does nothing; and
//! what a synced write takes on a disk.

mod disk;
mod measure;
mod store;
mod text;

use std::path::Path;

use serde::{Deserialize, Serialize};
use tacho_record::Given;

use crate::files::Files;

pub use disk::{DiskCalibration, DiskError, SyncedWrites, disk_text, measure_disk};
pub use measure::measure;
pub use store::{StoreError, check_writable, load, path, store};
pub use text::calibration_text;

/// Version of the form of a calibration.
pub(super) const VERSION: u32 = 1;

/// Part of what a core reaches that can be planned with: the generator's health check asks for
/// threads that are busy less than 80 % of their time.
pub const PLANNED_SHARE: f64 = 0.8;

/// What the generator can do on a machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Calibration {
    /// Version of this form.
    pub schema_version: u32,
    /// When it was measured, RFC 3339 in UTC.
    pub measured_at: String,
    /// What the user calls it and says about it.
    #[serde(skip_serializing_if = "Given::is_empty")]
    pub given: Given,
    /// The machine and the program that it holds for.
    pub machine: Machine,
    /// Was it a short one?
    pub quick: bool,
    /// Threads of the generator, each on a core of its own where there are enough.
    pub generator_threads: usize,
    /// Rates by QoS and payload of a few clients that send as fast as it goes.
    pub rates: Vec<RateCell>,
    /// Rates by QoS of many clients that send each message at its own time, as scenarios do.
    pub scheduled: Vec<RateCell>,
    /// How late messages were sent, at rates that the generator carries with ease.
    pub lateness: Vec<LatenessCell>,
    /// Connections and what they take; absent where they could not be opened.
    pub connections: Option<Connections>,
}

/// A machine, and the program on it, as far as they decide what the generator can do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// Version of the program.
    pub tool_version: String,
    /// Was the program compiled with optimisation?
    pub optimised: bool,
    /// CPU model.
    pub cpu_model: Option<String>,
    /// Cores online, in the kernel's list form.
    pub cpus_online: Option<String>,
    /// Kernel release.
    pub kernel: Option<String>,
}

/// What one kind of message takes of the generator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RateCell {
    /// Quality of service.
    pub qos: u8,
    /// Bytes of payload.
    pub payload_bytes: u64,
    /// Messages sent and received per second, by all threads.
    pub messages_per_s: f64,
    /// CPU of the generator's threads, one core = 100.
    pub generator_cpu_percent: f64,
    /// The busiest thread, in percent of its time.
    pub thread_busy_percent: f64,
    /// Messages per second of CPU: what one core would reach alone.
    pub per_core: f64,
}

/// How late messages were sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LatenessCell {
    /// Messages sent per second.
    pub rate_per_s: f64,
    /// Messages.
    pub count: u64,
    /// Median of the time from when a message was due until it was written, in microseconds.
    pub p50_us: Option<u64>,
    /// 99th percentile.
    pub p99_us: Option<u64>,
    /// 99.9th percentile.
    pub p999_us: Option<u64>,
    /// Greatest.
    pub max_us: Option<u64>,
    /// Messages more than a millisecond late.
    pub overrun: u64,
}

/// Opening and holding connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Connections {
    /// Clients of the larger of two runs.
    pub clients: u64,
    /// Connections opened per second.
    pub connects_per_s: Option<f64>,
    /// 99th percentile from TCP connect to CONNACK, in microseconds.
    pub connect_p99_us: Option<u64>,
    /// Memory of the generator's process per client, in bytes; the kernel's sockets not included.
    pub bytes_per_client: Option<f64>,
}

impl Connections {
    /// Clients that a gibibyte of the generator's memory holds.
    pub fn clients_per_gib(&self) -> Option<f64> {
        let bytes = self.bytes_per_client.filter(|bytes| *bytes > 0.0)?;
        Some(((1_u64 << 30) as f64 / bytes).floor())
    }
}

impl Machine {
    /// This one.
    pub fn this() -> Self {
        Self::below(Path::new("/"))
    }

    fn below(root: &Path) -> Self {
        let files = Files(root);
        Self {
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            optimised: !cfg!(debug_assertions),
            cpu_model: files.cpu_model(),
            cpus_online: files.line("sys/devices/system/cpu/online"),
            kernel: files.line("proc/sys/kernel/osrelease"),
        }
    }
}

impl Calibration {
    /// An empty one of this machine.
    pub fn new(measured_at: String, quick: bool) -> Self {
        let machine = Machine::this();
        Self { schema_version: VERSION, measured_at, machine, quick, ..Self::default() }
    }

    /// Messages per second, sent and received, that can be planned per core, of clients that send
    /// at their own time. What a payload of another size takes more or less is known from
    /// messages that were sent as fast as it goes.
    pub fn planned_per_core(&self, qos: u8, payload_bytes: u64) -> Option<f64> {
        let fastest = nearest(&self.rates, qos, payload_bytes);
        let Some(scheduled) = nearest(&self.scheduled, qos, payload_bytes) else {
            return Some(fastest?.per_core * PLANNED_SHARE);
        };
        let like = nearest(&self.rates, qos, scheduled.payload_bytes);
        let more = fastest.zip(like).map_or(0.0, |(this, like)| seconds(this) - seconds(like));
        Some(PLANNED_SHARE / (seconds(scheduled) + more.max(0.0)))
    }
}

/// The cell of the payload that is next to `payload_bytes`.
fn nearest(cells: &[RateCell], qos: u8, payload_bytes: u64) -> Option<&RateCell> {
    let of_qos = cells.iter().filter(|cell| cell.qos == qos && cell.per_core > 0.0);
    of_qos.min_by_key(|cell| cell.payload_bytes.abs_diff(payload_bytes))
}

/// Time of a core that a message takes.
fn seconds(cell: &RateCell) -> f64 {
    cell.per_core.recip()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calibration() -> Calibration {
        let cell = |qos, payload_bytes, per_core| RateCell {
            qos,
            payload_bytes,
            per_core,
            messages_per_s: per_core,
            generator_cpu_percent: 100.0,
            thread_busy_percent: 99.0,
        };
        let connections = Connections {
            clients: 4000,
            connects_per_s: Some(9000.0),
            connect_p99_us: Some(3000),
            bytes_per_client: Some(2048.0),
        };
        let lateness = LatenessCell {
            rate_per_s: 1000.0,
            count: 5000,
            p50_us: Some(20),
            p99_us: Some(90),
            ..LatenessCell::default()
        };
        Calibration {
            generator_threads: 1,
            rates: vec![cell(1, 32, 200_000.0), cell(1, 1024, 100_000.0), cell(0, 32, 400_000.0)],
            lateness: vec![lateness],
            connections: Some(connections),
            ..Calibration::new("2026-01-01T00:00:00Z".to_owned(), false)
        }
    }

    #[test]
    fn plans_take_the_nearest_payload_and_leave_room() {
        let calibration = calibration();
        assert_eq!(calibration.planned_per_core(1, 100), Some(160_000.0));
        assert_eq!(calibration.planned_per_core(1, 900), Some(80_000.0));
        assert_eq!(calibration.planned_per_core(0, 900), Some(320_000.0));
        assert_eq!(calibration.planned_per_core(2, 32), None);
        let connections = calibration.connections.expect("has them");
        assert_eq!(connections.clients_per_gib(), Some(524_288.0));
    }

    #[test]
    fn plans_are_of_messages_that_are_sent_at_their_own_time() {
        let mut calibration = calibration();
        let of_32 = calibration.rates[0];
        calibration.scheduled.push(RateCell { per_core: 20_000.0, ..of_32 });
        assert_eq!(calibration.planned_per_core(1, 100), Some(16_000.0));
        // 50 us, and the 5 us that 1 KiB takes more than 32 B.
        let planned = calibration.planned_per_core(1, 900).expect("measured");
        assert!((planned - 0.8 / 55e-6).abs() < 0.01, "{planned}");
        // What was not measured that way is as fast as it goes.
        assert_eq!(calibration.planned_per_core(0, 900), Some(320_000.0));
        let text = calibration_text(&calibration);
        assert!(text.contains("About 16,000 messages per second at QoS 1"), "{text}");
        assert!(text.contains("SCHEDULED"), "{text}");
    }

    #[test]
    fn only_the_calibration_of_this_machine_is_used() {
        let folder = tempfile::tempdir().expect("temporary directory");
        let path = folder.path().join("deep/calibration.json");
        assert!(load(&path).is_none());
        let calibration = calibration();
        store(&path, &calibration).expect("writes");
        assert_eq!(load(&path), Some(calibration.clone()));
        let mut other = calibration.clone();
        other.machine.cpu_model = Some("another one".to_owned());
        store(&path, &other).expect("writes");
        assert!(load(&path).is_none());
        let newer = Calibration { schema_version: 99, ..calibration };
        store(&path, &newer).expect("writes");
        assert!(load(&path).is_none());
        std::fs::write(&path, "{").expect("writes");
        assert!(load(&path).is_none());
        std::fs::create_dir_all(folder.path().join("folder")).expect("creates");
        assert!(store(&folder.path().join("folder"), &newer).is_err());
    }

    #[test]
    fn the_table_says_what_it_means() {
        let given = Given { name: "Kernel 6.12".to_owned(), note: "idle".to_owned() };
        let text = calibration_text(&Calibration { given, ..calibration() });
        assert!(text.starts_with("Kernel 6.12: idle\n"), "{text}");
        for words in [
            "QoS 1, 1024 B",
            "About 160,000 messages per second at QoS 1",
            "524,288 clients",
            "9,000",
            "90 µs",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
    }
}
