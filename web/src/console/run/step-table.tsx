// The measured windows of a ladder, a search, a suite or repeats.

import { useWords } from "../i18n";
import { VerdictChip } from "../parts/verdict";
import { percent, perSecond, us, runName } from "../show";
import type { Run, Step } from "../types";

export function StepTable({ run, steps }: { run: Run; steps: Step[] }) {
  const t = useWords();
  return (
    <section class="card">
      <h2>{t.run.finishedSteps}</h2>
      <div
        class="scroll"
        tabIndex={0}
        role="region"
        aria-label={`${runName(run)}: ${t.run.finishedSteps}`}
      >
        <table class="plain">
          <thead>
            <tr>
              <th scope="col">{t.run.step}</th>
              <th scope="col">{t.columns.verdict}</th>
              <th scope="col" class="number">
                {t.columns.attempted_tps}
                <small>{t.columnUnits["attempted_tps"]}</small>
              </th>
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
            </tr>
          </thead>
          <tbody>
            {steps.map((step, index) => (
              <tr key={index}>
                <th scope="row">
                  {[step.series, step.label].filter((part) => part !== "").join(" ") ||
                    `${index + 1}`}
                </th>
                <td>
                  <VerdictChip verdict={step.verdict} />
                </td>
                <td class="number">{perSecond(step.offered_in_per_s + step.offered_out_per_s)}</td>
                <td class="number">{perSecond(step.tps)}</td>
                <td class="number">{us(step.latency_us.mean)}</td>
                <td class="number">{us(step.latency_us.p99)}</td>
                <td class="number">{percent(step.cpu_percent ?? step.broker_cpu_percent)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
