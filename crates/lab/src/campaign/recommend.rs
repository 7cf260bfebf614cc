//! The recommended workload: the load at which mean CPU reaches a percentage.
//!
//! The method is that of the EMQX guide: linear interpolation of mean CPU over messages in and out
//! per second, between the two neighbouring steps. Around it:
//!
//! - CPU that falls from one step to the next is levelled first (isotonic regression by pooling
//!   adjacent violators), so that there is one crossing only.
//! - Steps at which the generator was the bottleneck are left out. The first step that was not
//!   sustained is the last one that counts: what it achieved bounds the result from above.
//! - Outside the measured steps there is no figure, only a bound.
//! - The 95 % confidence interval comes from a bootstrap over the seconds of each step: blocks of
//!   neighbouring seconds (moving blocks of length n^(1/3), since seconds are not independent) are
//!   drawn anew, with repeated steps drawn first, and the whole interpolation is done again.

use tacho_record::Position;

/// Draws of the bootstrap.
const DRAWS: usize = 1000;
/// Share of the draws outside the interval, at each end.
const TAIL: f64 = 0.025;

/// One run of one step of a ladder.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadPoint {
    /// Which step of the ladder it is, counted from its start; repeats of a step share it.
    pub rung: usize,
    /// Messages in and out per second.
    pub tps: f64,
    /// Mean CPU in percent.
    pub cpu_percent: f64,
    /// At least 99 % of the offered load was carried.
    pub sustained: bool,
    /// Messages per second and CPU of each second; empty when unknown.
    pub seconds: Vec<(f64, f64)>,
}

/// Where CPU reaches a percentage.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Interpolated {
    /// Where that lies in relation to the steps.
    pub position: Position,
    /// Messages per second; absent outside the steps.
    pub tps: Option<f64>,
    /// Lower end of the 95 % confidence interval, or the highest load measured when it lies above.
    pub low: Option<f64>,
    /// Upper end, or the lowest load measured when it lies below.
    pub high: Option<f64>,
    /// The point (by position in the input) whose CPU is nearest.
    pub nearest: Option<usize>,
}

/// Where a curve crosses a percentage.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Crossing {
    Below(f64),
    At(f64),
    Above(f64),
}

/// Finds the load at which CPU reaches `percent`; `seed` makes the interval reproducible.
pub fn interpolate(points: &[LoadPoint], percent: f64, seed: u64) -> Interpolated {
    let rungs = usable(points);
    let distance = |index: &usize| (points[*index].cpu_percent - percent).abs();
    let nearest = rungs
        .iter()
        .flatten()
        .copied()
        .filter(|index| points[*index].sustained)
        .min_by(|left, right| distance(left).total_cmp(&distance(right)));
    let means: Vec<(f64, f64)> = rungs
        .iter()
        .map(|runs| mean(runs.iter().map(|run| (points[*run].tps, points[*run].cpu_percent))))
        .collect();
    let Some(crossing) = crossing(&means, percent) else {
        return Interpolated { nearest, ..Interpolated::default() };
    };
    match crossing {
        Crossing::Below(tps) => Interpolated {
            position: Position::BelowLadder,
            high: Some(tps),
            nearest,
            ..Interpolated::default()
        },
        Crossing::Above(tps) => Interpolated {
            position: Position::AboveLadder,
            low: Some(tps),
            nearest,
            ..Interpolated::default()
        },
        Crossing::At(tps) => {
            let (low, high) = interval(points, &rungs, percent, seed);
            Interpolated { position: Position::Within, tps: Some(tps), low, high, nearest }
        }
    }
}

/// The points of each rung that counts, in order.
fn usable(points: &[LoadPoint]) -> Vec<Vec<usize>> {
    let last = points.iter().map(|point| point.rung).max().unwrap_or(0);
    let mut rungs = Vec::new();
    for rung in 0..=last {
        let runs: Vec<usize> =
            (0..points.len()).filter(|index| points[*index].rung == rung).collect();
        let sustained = runs.iter().all(|run| points[*run].sustained);
        if !runs.is_empty() {
            rungs.push(runs);
        }
        if !sustained {
            break;
        }
    }
    rungs
}

fn mean(pairs: impl Iterator<Item = (f64, f64)>) -> (f64, f64) {
    let (mut sum, mut count) = ((0.0, 0.0), 0.0);
    for (x, y) in pairs {
        sum = (sum.0 + x, sum.1 + y);
        count += 1.0;
    }
    if count > 0.0 { (sum.0 / count, sum.1 / count) } else { sum }
}

/// Where the (load, CPU) curve reaches `percent`; `None` without points.
fn crossing(means: &[(f64, f64)], percent: f64) -> Option<Crossing> {
    let mut curve: Vec<(f64, f64)> = Vec::with_capacity(means.len());
    for point in means {
        // A step that carried no more than the one before it tells nothing about more load.
        if curve.last().is_none_or(|last| point.0 > last.0) {
            curve.push(*point);
        }
    }
    let levelled = isotonic(&curve.iter().map(|point| point.1).collect::<Vec<_>>());
    let (first, last) = (curve.first()?, curve.last()?);
    if levelled[0] > percent {
        return Some(Crossing::Below(first.0));
    }
    let Some(at) = levelled.iter().position(|cpu| *cpu >= percent) else {
        return Some(Crossing::Above(last.0));
    };
    if at == 0 {
        return Some(Crossing::At(first.0));
    }
    let (from, to) = (levelled[at - 1], levelled[at]);
    let share = (percent - from) / (to - from);
    Some(Crossing::At(curve[at - 1].0 + share * (curve[at].0 - curve[at - 1].0)))
}

/// The non-decreasing sequence nearest to `values` in least squares: pool adjacent violators.
fn isotonic(values: &[f64]) -> Vec<f64> {
    let mut pools: Vec<(f64, usize)> = Vec::with_capacity(values.len());
    for value in values {
        pools.push((*value, 1));
        while let [.., (left, left_count), (right, right_count)] = pools[..]
            && left > right
        {
            let count = left_count + right_count;
            let level = (left * left_count as f64 + right * right_count as f64) / count as f64;
            pools.truncate(pools.len() - 2);
            pools.push((level, count));
        }
    }
    pools.into_iter().flat_map(|(level, count)| std::iter::repeat_n(level, count)).collect()
}

/// The 95 % confidence interval of the crossing; an end that lies outside the steps is absent.
fn interval(
    points: &[LoadPoint],
    rungs: &[Vec<usize>],
    percent: f64,
    seed: u64,
) -> (Option<f64>, Option<f64>) {
    if rungs.iter().flatten().any(|run| points[*run].seconds.len() < 2) {
        return (None, None);
    }
    let mut random = fastrand::Rng::with_seed(seed);
    let mut found: Vec<f64> = (0..DRAWS)
        .filter_map(|_| {
            let means: Vec<(f64, f64)> =
                rungs.iter().map(|runs| redrawn(points, runs, &mut random)).collect();
            crossing(&means, percent)
        })
        .map(|crossing| match crossing {
            Crossing::Below(_) => f64::NEG_INFINITY,
            Crossing::At(tps) => tps,
            Crossing::Above(_) => f64::INFINITY,
        })
        .collect();
    found.sort_by(f64::total_cmp);
    let quantile = |share: f64| {
        let index = (share * (found.len() - 1) as f64).round() as usize;
        found.get(index).copied().filter(|tps| tps.is_finite())
    };
    if found.is_empty() { (None, None) } else { (quantile(TAIL), quantile(1.0 - TAIL)) }
}

/// Mean load and CPU of a rung with its runs and their seconds drawn anew.
fn redrawn(points: &[LoadPoint], runs: &[usize], random: &mut fastrand::Rng) -> (f64, f64) {
    mean(runs.iter().map(|_| {
        let point = &points[runs[random.usize(..runs.len())]];
        let all = mean(point.seconds.iter().copied());
        let drawn = mean(blocks(&point.seconds, random));
        // The figures of the step stay the centre: they are exact, its seconds are not.
        (point.tps + drawn.0 - all.0, point.cpu_percent + drawn.1 - all.1)
    }))
}

/// As many seconds as there are, drawn in blocks of neighbours; the last is followed by the first.
fn blocks<'a>(
    seconds: &'a [(f64, f64)],
    random: &'a mut fastrand::Rng,
) -> impl Iterator<Item = (f64, f64)> + 'a {
    let count = seconds.len();
    let length = ((count as f64).cbrt().round() as usize).max(1);
    let mut start = 0;
    (0..count).map(move |index| {
        if index % length == 0 {
            start = random.usize(..count);
        }
        seconds[(start + index % length) % count]
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacho_scenario::published::{guide_cpu_curve, guide_recommended};

    fn ladder(curve: &[(f64, f64)]) -> Vec<LoadPoint> {
        let point = |(rung, (tps, cpu)): (usize, &(f64, f64))| LoadPoint {
            rung,
            tps: *tps,
            cpu_percent: *cpu,
            sustained: true,
            seconds: Vec::new(),
        };
        curve.iter().enumerate().map(point).collect()
    }

    #[test]
    fn the_guides_curves_give_its_recommended_workloads() {
        let expected = [
            ("symmetric-qos0", 57_000.0),
            ("symmetric-qos1", 40_000.0),
            ("symmetric-qos2", 24_000.0),
            ("fan-in", 30_000.0),
            ("fan-out", 54_000.0),
            ("bridge", 25_500.0),
        ];
        for (series, tps) in expected {
            let curve = guide_cpu_curve(series);
            assert!(curve.len() >= 3, "{series}: {curve:?}");
            let found = interpolate(&ladder(&curve), 75.0, 1);
            assert_eq!(found.position, Position::Within, "{series}");
            let found = found.tps.expect("is within");
            assert!((found / tps - 1.0).abs() < 0.03, "{series}: {found}, expected {tps}");
        }
        assert!(guide_recommended().len() >= 6);
    }

    #[test]
    fn nothing_is_extrapolated() {
        let curve = [(10.0, 20.0), (20.0, 30.0), (30.0, 40.0)];
        let above = interpolate(&ladder(&curve), 75.0, 1);
        assert_eq!((above.position, above.tps), (Position::AboveLadder, None));
        assert_eq!((above.low, above.high, above.nearest), (Some(30.0), None, Some(2)));
        let below = interpolate(&ladder(&curve), 10.0, 1);
        assert_eq!((below.position, below.tps), (Position::BelowLadder, None));
        assert_eq!((below.low, below.high), (None, Some(10.0)));
        assert_eq!(interpolate(&[], 75.0, 1).position, Position::Unknown);
        let exact = interpolate(&ladder(&curve), 40.0, 1);
        assert_eq!((exact.position, exact.tps), (Position::Within, Some(30.0)));
        assert_eq!(interpolate(&ladder(&curve), 20.0, 1).tps, Some(10.0));
    }

    #[test]
    fn falling_cpu_is_levelled() {
        assert_eq!(isotonic(&[1.0, 3.0, 2.0, 4.0]), [1.0, 2.5, 2.5, 4.0]);
        assert_eq!(isotonic(&[3.0, 2.0, 1.0]), [2.0, 2.0, 2.0]);
        // 80 at 20 is an outlier: with 60 behind it, it counts as 70.
        let curve = [(10.0, 40.0), (20.0, 80.0), (30.0, 60.0), (40.0, 90.0)];
        let found = interpolate(&ladder(&curve), 75.0, 1).tps.expect("is within");
        assert!((found - 32.5).abs() < 1e-9, "{found}");
    }

    #[test]
    fn steps_behind_the_first_that_was_not_sustained_do_not_count() {
        let mut points = ladder(&[(10.0, 40.0), (20.0, 60.0), (25.0, 100.0), (15.0, 100.0)]);
        points[2].sustained = false;
        points[3].sustained = false;
        let found = interpolate(&points, 75.0, 1);
        let tps = found.tps.expect("is within");
        assert!((tps - (20.0 + 5.0 * 15.0 / 40.0)).abs() < 1e-9, "{tps}");
        assert_eq!(found.nearest, Some(1), "a step that was not sustained is recommended never");
        // It carried less than the step before it: that one is all that is known.
        points[2].tps = 18.0;
        let found = interpolate(&points, 75.0, 1);
        assert_eq!((found.position, found.low), (Position::AboveLadder, Some(20.0)));
    }

    /// A ladder with a known crossing and noisy, correlated seconds.
    fn noisy(random: &mut fastrand::Rng, repeats: usize) -> Vec<LoadPoint> {
        let mut points = Vec::new();
        for rung in 0..6 {
            let tps = 10_000.0 * (rung + 1) as f64;
            let level = 20.0 + tps / 1000.0;
            for _ in 0..repeats {
                let mut error = 0.0;
                let seconds: Vec<(f64, f64)> = (0..30)
                    .map(|_| {
                        error = 0.4 * error + 6.0 * (random.f64() - 0.5);
                        (tps * (1.0 + 0.01 * (random.f64() - 0.5)), level + error)
                    })
                    .collect();
                let (tps, cpu_percent) = mean(seconds.iter().copied());
                points.push(LoadPoint { rung, tps, cpu_percent, sustained: true, seconds });
            }
        }
        points
    }

    #[test]
    fn the_interval_covers_the_truth() {
        let mut random = fastrand::Rng::with_seed(42);
        let mut covered = 0;
        let mut widths = Vec::new();
        for draw in 0..100 {
            let found = interpolate(&noisy(&mut random, 1), 75.0, draw);
            let (low, high) = (found.low.expect("low"), found.high.expect("high"));
            assert!(low <= found.tps.expect("tps") && found.tps.expect("tps") <= high);
            covered += usize::from((low..=high).contains(&55_000.0));
            widths.push(high - low);
        }
        // 95 of 100 on average; block bootstraps over 30 seconds are a little narrow.
        assert!((82..=100).contains(&covered), "{covered} of 100");
        let mean_width = widths.iter().sum::<f64>() / widths.len() as f64;
        assert!((500.0..4000.0).contains(&mean_width), "{mean_width}");
        let repeated = (0..30).map(|draw| {
            let found = interpolate(&noisy(&mut random, 3), 75.0, draw);
            found.high.expect("high") - found.low.expect("low")
        });
        let repeated = repeated.sum::<f64>() / 30.0;
        assert!(repeated < 0.95 * mean_width, "{repeated} of {mean_width}");
    }

    #[test]
    fn an_interval_that_leaves_the_ladder_is_open() {
        let mut random = fastrand::Rng::with_seed(3);
        let mut points = noisy(&mut random, 1);
        // The last step is just above 75 %.
        points.retain(|point| point.rung < 5);
        let top = points.last_mut().expect("has points");
        top.cpu_percent = 75.2;
        let found = interpolate(&points, 75.0, 1);
        assert_eq!(found.position, Position::Within);
        assert!(found.low.is_some() && found.high.is_none(), "{found:?}");
    }

    #[test]
    fn the_same_seed_gives_the_same_interval() {
        let points = noisy(&mut fastrand::Rng::with_seed(1), 2);
        assert_eq!(interpolate(&points, 75.0, 9), interpolate(&points, 75.0, 9));
    }
}
