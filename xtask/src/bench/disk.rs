//! The disk's own latency for the minimum of a commit: one block written and synced.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::figures::Sample;

const BLOCK: usize = 4096;
/// Syncs of each kind, fewer if time runs out.
const SYNCS: usize = 2000;
const TIME: Duration = Duration::from_secs(4);

/// Measures the disk below `folder`: blocks of a file with allocated space, like a log in recycled
/// segments, and blocks appended to a file.
pub(super) fn measure(mut sample: Sample, folder: &Path) -> Result<Sample> {
    let path = folder.join("sync-test");
    let prepared = sync_us(&path, true);
    let grown = prepared.and_then(|prepared| Ok((prepared, sync_us(&path, false)?)));
    // The file is in the benchmark's own folder.
    let _ = std::fs::remove_file(&path);
    let (prepared, grown) = grown?;
    sample.set("fdatasync_us_p50", quantile(&prepared, 0.5));
    sample.set("fdatasync_us_p99", quantile(&prepared, 0.99));
    sample.set("fdatasync_grown_us_p50", quantile(&grown, 0.5));
    sample.set("fdatasync_grown_us_p99", quantile(&grown, 0.99));
    Ok(sample)
}

/// Microseconds of each write and sync, in order.
fn sync_us(path: &Path, prepared: bool) -> Result<Vec<f64>> {
    let file = File::create(path).with_context(|| format!("cannot create {path:?}"))?;
    if prepared {
        file.write_all_at(&vec![0; BLOCK * SYNCS], 0).context("cannot write")?;
    }
    file.sync_all().context("cannot sync")?;
    let (mut took, started) = (Vec::with_capacity(SYNCS), Instant::now());
    for number in 0..SYNCS {
        let at = Instant::now();
        let block = [number as u8 | 1; BLOCK];
        file.write_all_at(&block, (number * BLOCK) as u64).context("cannot write")?;
        file.sync_data().context("cannot sync")?;
        took.push(at.elapsed().as_nanos() as f64 / 1e3);
        if started.elapsed() > TIME {
            break;
        }
    }
    took.sort_by(f64::total_cmp);
    Ok(took)
}

/// The quantile at this share.
fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let at = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(at.saturating_sub(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles() {
        let sorted: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!((quantile(&sorted, 0.5), quantile(&sorted, 0.99)), (Some(50.0), Some(99.0)));
        assert_eq!((quantile(&[7.0], 0.99), quantile(&[], 0.99)), (Some(7.0), None));
    }

    #[test]
    fn a_disk_is_measured() {
        let folder = tempfile::tempdir().expect("a folder");
        let sample = measure(Sample::new("disk", 1), folder.path()).expect("a disk");
        let p50 = sample.metrics["fdatasync_us_p50"];
        assert!(p50 > 0.0 && p50 <= sample.metrics["fdatasync_us_p99"]);
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0);
    }
}
