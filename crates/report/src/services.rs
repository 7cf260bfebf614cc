//! Response times, throughput and failures by kind of request, clients and bytes: the charts that
//! load services show.

use super::axis::Unit;
use super::chart::{Chart, Line, Style};
use super::lang::Lang;
use super::over_time::{every_interval, line, log_over_time, over_time};
use tacho_record::SeriesRow;

/// The mean over everything that ended, from the means of two parts and how many each had.
fn all(ok: Option<f64>, ok_per_s: f64, failed: Option<f64>, failed_per_s: f64) -> Option<f64> {
    match (ok, failed) {
        (Some(ok), Some(failed)) if ok_per_s + failed_per_s > 0.0 => {
            Some((ok * ok_per_s + failed * failed_per_s) / (ok_per_s + failed_per_s))
        }
        (ok, failed) => ok.or(failed),
    }
}

/// All charts that have something to show.
pub(super) fn charts(lang: Lang, rows: &[SeriesRow]) -> Vec<Chart> {
    let mut charts = vec![response_times(lang, rows)];
    charts.extend(per_request(lang, rows));
    charts.push(overall_throughput(lang, rows));
    charts.push(throughput(lang, rows));
    charts.push(failures(lang, rows));
    charts.push(over_time(
        lang,
        rows,
        lang.virtual_users(),
        lang.clients_connected(),
        Unit::Number,
        vec![line(rows, lang.connected(), 1, |row| Some(row.connected as f64))],
    ));
    charts.push(bytes(lang, rows));
    charts.retain(|chart| !chart.is_empty());
    charts
}

fn response_times(lang: Lang, rows: &[SeriesRow]) -> Chart {
    let lines = vec![
        every_interval(rows, lang.connect(), 4, |row| {
            let (ok, failed) = (row.connect_ok_per_s, row.connect_failed_per_s);
            all(row.connect_mean_us, ok, row.connect_failed_mean_us, failed)
        }),
        every_interval(rows, lang.subscribe(), 7, |row| {
            let (ok, failed) = (row.subscribe_ok_per_s, row.subscribe_failed_per_s);
            all(row.subscribe_mean_us, ok, row.subscribe_failed_mean_us, failed)
        }),
        line(rows, lang.publish_acknowledged(), 1, |row| {
            let (ok, failed) = (row.acked_per_s, row.publish_failed_per_s);
            all(row.ack_mean_us, ok, row.publish_failed_mean_us, failed)
        }),
        line(rows, lang.publish_to_receive(), 2, |row| row.e2e_mean_us),
    ];
    let mut chart =
        log_over_time(lang, rows, lang.response_time_all_requests_mean(), present(lines));
    lang.what_response_times_are().clone_into(&mut chart.note);
    chart
}

/// Response times of successes and failures, a chart per kind of request.
fn per_request(lang: Lang, rows: &[SeriesRow]) -> Vec<Chart> {
    let of = |title: &str, lines: Vec<Line>| log_over_time(lang, rows, title, present(lines));
    vec![
        of(
            lang.response_time_connect(),
            vec![
                every_interval(rows, lang.succeeded_mean(), 3, |row| row.connect_mean_us),
                every_interval(rows, lang.succeeded_p99(), 1, |row| {
                    row.connect_p99_us.map(|us| us as f64)
                }),
                every_interval(rows, lang.failed_mean(), 2, |row| row.connect_failed_mean_us),
            ],
        ),
        of(
            lang.response_time_publish(),
            vec![
                line(rows, lang.succeeded_mean(), 3, |row| row.ack_mean_us),
                line(rows, lang.succeeded_p99(), 1, |row| row.ack_p99_us.map(|us| us as f64)),
                line(rows, lang.failed_mean(), 2, |row| row.publish_failed_mean_us),
            ],
        ),
        of(
            lang.response_time_subscribe(),
            vec![
                every_interval(rows, lang.succeeded_mean(), 3, |row| row.subscribe_mean_us),
                every_interval(rows, lang.succeeded_p99(), 1, |row| {
                    row.subscribe_p99_us.map(|us| us as f64)
                }),
                every_interval(rows, lang.failed_mean(), 2, |row| row.subscribe_failed_mean_us),
            ],
        ),
    ]
}

fn succeeded(row: &SeriesRow) -> f64 {
    row.connect_ok_per_s + row.subscribe_ok_per_s + row.acked_per_s
}

fn failed(row: &SeriesRow) -> f64 {
    row.connect_failed_per_s + row.subscribe_failed_per_s + row.publish_failed_per_s
}

fn overall_throughput(lang: Lang, rows: &[SeriesRow]) -> Chart {
    let lines = vec![
        line(rows, lang.all_requests(), 1, |row| Some(succeeded(row) + failed(row)))
            .style(Style::Under),
        line(rows, lang.succeeded(), 3, |row| Some(succeeded(row))),
        line(rows, lang.failed_requests(), 2, |row| Some(failed(row))),
    ];
    over_time(lang, rows, lang.overall_throughput(), lang.requests_per_second(), Unit::Rate, lines)
}

fn throughput(lang: Lang, rows: &[SeriesRow]) -> Chart {
    let lines = vec![
        line(rows, lang.connect(), 4, |row| Some(row.connect_ok_per_s)),
        line(rows, lang.subscribe(), 7, |row| Some(row.subscribe_ok_per_s)),
        line(rows, lang.publish_acknowledged(), 1, |row| Some(row.acked_per_s)),
        line(rows, lang.receive(), 3, |row| Some(row.received_per_s)).style(Style::Dashed),
    ];
    let lines = lines.into_iter().filter(|line| !line.is_zero()).collect();
    over_time(
        lang,
        rows,
        lang.throughput_succeeded(),
        lang.requests_per_second(),
        Unit::Rate,
        lines,
    )
}

fn failures(lang: Lang, rows: &[SeriesRow]) -> Chart {
    let lines = vec![
        line(rows, lang.connect(), 4, |row| Some(row.connect_failed_per_s)),
        line(rows, lang.subscribe(), 7, |row| Some(row.subscribe_failed_per_s)),
        line(rows, lang.publish(), 1, |row| Some(row.publish_failed_per_s)),
        line(rows, lang.connections_lost(), 2, |row| Some(row.disconnects as f64 / row.length_s)),
    ];
    over_time(lang, rows, lang.throughput_failed(), lang.failures_per_second(), Unit::Rate, lines)
}

fn bytes(lang: Lang, rows: &[SeriesRow]) -> Chart {
    let lines = vec![
        line(rows, lang.downloaded(), 3, |row| Some(row.bytes_in_per_s)),
        line(rows, lang.uploaded(), 1, |row| Some(row.bytes_out_per_s)),
    ];
    let lines = lines.into_iter().filter(|line| !line.is_zero()).collect();
    over_time(
        lang,
        rows,
        lang.bytes_of_all_clients(),
        lang.bytes_per_second(),
        Unit::BytesPerS,
        lines,
    )
}

/// The lines that have points.
fn present(lines: Vec<Line>) -> Vec<Line> {
    lines.into_iter().filter(|line| !line.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_together_is_weighted_by_how_often_it_happened() {
        assert_eq!(all(Some(100.0), 9.0, Some(1100.0), 1.0), Some(200.0));
        assert_eq!(all(Some(100.0), 0.0, None, 0.0), Some(100.0));
        assert_eq!(all(None, 0.0, Some(7.0), 1.0), Some(7.0));
        assert_eq!(all(None, 0.0, None, 0.0), None);
    }

    #[test]
    fn old_rows_give_no_charts_of_what_they_do_not_know() {
        let row = SeriesRow { length_s: 1.0, received_per_s: 5.0, ..SeriesRow::default() };
        let rows = vec![row.clone(), SeriesRow { start_s: 1.0, ..row }];
        let titles: Vec<_> = charts(Lang::En, &rows).into_iter().map(|chart| chart.title).collect();
        assert!(!titles.iter().any(|title| title.contains("Bytes")), "{titles:?}");
        assert!(!titles.iter().any(|title| title.contains("Response")), "{titles:?}");
        assert!(titles.contains(&"Throughput, succeeded".to_owned()));
    }
}
