// The measured windows of a ladder, a search, a suite or repeats, finished or still under way.

import { useWords } from "../i18n";
import { VerdictChip } from "../parts/verdict";
import { percent, perSecond, us } from "../show";

export interface StepRow {
  label: string;
  verdict: string;
  reason?: string | null;
  // Absent in all rows: no column.
  attempted_tps?: number;
  tps: number | null;
  e2e_mean_us: number | null;
  e2e_p99_us: number | null;
  cpu_percent: number | null;
}

// The charts of a row: whether they are shown, and what shows them.
export interface RowCharts {
  isShown: boolean;
  show: () => void;
}

export function StepTable({
  name,
  rows,
  charts,
}: {
  name: string;
  rows: StepRow[];
  charts?: (index: number) => RowCharts | null;
}) {
  const t = useWords();
  const hasAttempted = rows.some((row) => row.attempted_tps !== undefined);
  return (
    <section class="card">
      <h2>{t.run.finishedSteps}</h2>
      <div class="scroll" tabIndex={0} role="region" aria-label={name}>
        <table class="plain">
          <thead>
            <tr>
              <th scope="col">{t.run.step}</th>
              <th scope="col">{t.columns.verdict}</th>
              {hasAttempted && (
                <th scope="col" class="number">
                  {t.columns.attempted_tps}
                  <small>{t.columnUnits["attempted_tps"]}</small>
                </th>
              )}
              <th scope="col" class="number">
                {t.columns.achieved_tps}
                <small>{t.columnUnits["achieved_tps"]}</small>
              </th>
              <th scope="col" class="number">
                {t.run.mean}
              </th>
              <th scope="col" class="number">
                p99
              </th>
              <th scope="col" class="number">
                {t.columns.cpu_percent}
                <small>%</small>
              </th>
              {charts && <td />}
            </tr>
          </thead>
          <tbody>
            {rows.map((row, index) => (
              <tr key={index}>
                <th scope="row">{row.label}</th>
                <td {...(row.reason == null ? {} : { title: row.reason })}>
                  <VerdictChip verdict={row.verdict} />
                </td>
                {hasAttempted && <td class="number">{perSecond(row.attempted_tps ?? null)}</td>}
                <td class="number">{perSecond(row.tps)}</td>
                <td class="number">{us(row.e2e_mean_us)}</td>
                <td class="number">{us(row.e2e_p99_us)}</td>
                <td class="number">{percent(row.cpu_percent)}</td>
                {charts && (
                  <td class="narrow">
                    <ChartsButton row={row} charts={charts(index)} />
                  </td>
                )}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function ChartsButton({ row, charts }: { row: StepRow; charts: RowCharts | null }) {
  const t = useWords();
  if (charts === null) return null;
  return (
    <button
      type="button"
      class="button small"
      aria-pressed={charts.isShown}
      aria-label={t.run.chartsOf(row.label)}
      onClick={charts.show}
    >
      {t.run.charts}
    </button>
  );
}
