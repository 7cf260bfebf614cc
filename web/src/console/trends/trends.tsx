// A figure of a scenario over versions and time.

import { get } from "../api";
import { useWords } from "../i18n";
import { useLoad } from "../load";
import { Icon } from "../parts/icon";
import { Empty, Failure, Loading } from "../parts/notice";
import { Chip } from "../parts/verdict";
import { query, usePlace } from "../router";
import { runName } from "../show";
import { useTitle } from "../title";
import type { Page, TrendFigure, Trends as TrendData } from "../types";
import { marksOf, unitOf } from "./marks";
import { PointTable } from "./point-table";
import { TrendChart } from "./trend-chart";

const FIGURES: TrendFigure[] = ["p99", "achieved_tps", "cpu_percent", "cpu_75_tps", "loss_percent"];

export function Trends() {
  const t = useWords();
  const place = usePlace();
  const figure = FIGURES.find((one) => one === place.query.get("figure")) ?? "p99";
  const first = useLoad<Page>("scenarios of runs", (signal) =>
    get(["runs"], new URLSearchParams({ limit: "1", sort: "-started" }), signal),
  );
  const scenarios = first.data?.facets?.scenarios ?? [];
  // Of the latest run, until one is chosen.
  const scenario = place.query.get("scenario") ?? first.data?.rows[0]?.scenario ?? "";
  const target = place.query.get("target") ?? "";
  const asked = new URLSearchParams({ scenario, figure, ...(target === "" ? {} : { target }) });
  const trends = useLoad<TrendData>(scenario === "" ? null : asked.toString(), (signal) =>
    get(["trends"], asked, signal),
  );
  const baselineQuery = new URLSearchParams({ scenario, baseline: "1", limit: "1" });
  const baseline = useLoad<Page>(scenario === "" ? null : `baseline ${scenario}`, (signal) =>
    get(["runs"], baselineQuery, signal),
  );
  useTitle(t.trends.title, scenario);
  const base = baseline.data?.rows.find((row) => row.baseline === true) ?? null;
  const points = trends.data?.points ?? [];
  const targets = [
    ...new Set([...points.map((point) => point.target), ...(target === "" ? [] : [target])]),
  ];
  const all =
    scenarios.includes(scenario) || scenario === "" ? scenarios : [scenario, ...scenarios];
  const changes = trends.data === null ? [] : marksOf(trends.data);
  return (
    <>
      <div class="page-head">
        <div>
          <h1>{t.trends.title}</h1>
          <p class="lead">{t.trends.lead}</p>
        </div>
      </div>
      <div class="filters">
        <label class="filter">
          <span>{t.trends.scenario}</span>
          <select
            value={scenario}
            onChange={(event) => query({ scenario: event.currentTarget.value, target: null })}
          >
            {scenario === "" && <option value="">{t.trends.choose}</option>}
            {all.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <label class="filter">
          <span>{t.trends.figure}</span>
          <select value={figure} onChange={(event) => query({ figure: event.currentTarget.value })}>
            {FIGURES.map((one) => (
              <option key={one} value={one}>
                {t.trends.figures[one]}
              </option>
            ))}
          </select>
        </label>
        {targets.length > 1 || target !== "" ? (
          <label class="filter">
            <span>{t.trends.target}</span>
            <select
              value={target}
              onChange={(event) => query({ target: event.currentTarget.value })}
            >
              <option value="">{t.trends.anyTarget}</option>
              {targets.map((one) => (
                <option key={one} value={one}>
                  {one === "" ? t.words.ownBroker : one}
                </option>
              ))}
            </select>
          </label>
        ) : null}
      </div>
      {first.error && <Failure error={first.error} retry={first.reload} />}
      {trends.error && <Failure error={trends.error} retry={trends.reload} />}
      {((first.data === null && !first.error) ||
        (scenario !== "" && trends.data === null && !trends.error)) && <Loading lines={8} />}
      {first.data !== null && scenario === "" && (
        <Empty icon="flag" title={t.records.emptyTitle} text={t.records.emptyText} />
      )}
      {trends.data !== null && points.length < 2 && (
        <Empty icon="flag" title={t.trends.emptyTitle} text={t.trends.emptyText} />
      )}
      {points.length >= 2 && (
        <>
          <section class="card">
            <div class="card-head">
              <h2>{t.trends.figures[figure]}</h2>
              <span class="quiet">
                {figure === "achieved_tps" || figure === "cpu_75_tps"
                  ? t.trends.higher
                  : t.trends.lower}
              </span>
            </div>
            <p class="so-far">
              {changes.length === 0 ? (
                <Chip tone="good">{t.trends.noChanges}</Chip>
              ) : (
                <Chip tone="warn">{t.trends.changes(changes.length)}</Chip>
              )}
              {base !== null && (
                <span class="tag strong">
                  <Icon name="flag" />
                  {t.trends.baseline}: {runName(base)}
                </span>
              )}
            </p>
            <TrendChart
              points={points}
              changes={changes}
              unit={unitOf(figure)}
              baseline={base?.id ?? null}
              name={t.trends.chart(t.trends.figures[figure], scenario, points.length)}
            />
          </section>
          <PointTable
            points={points}
            changes={changes}
            unit={unitOf(figure)}
            baseline={base?.id ?? null}
            figure={t.trends.figures[figure]}
            reload={baseline.reload}
          />
        </>
      )}
    </>
  );
}
