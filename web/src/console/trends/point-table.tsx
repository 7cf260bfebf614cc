// The points of a trend as a table, latest first.

import { useState } from "preact/hooks";

import { useWords } from "../i18n";
import { useIsOperator } from "../machine";
import { Chip } from "../parts/verdict";
import { When } from "../parts/when";
import { runAddress } from "../router";
import { annotate } from "../run-actions";
import { inUnit, runName, signed, targetName } from "../show";
import type { TrendPoint } from "../types";
import type { Mark } from "./marks";

// Rows that are shown at first; the others on demand.
const FIRST = 15;

export function PointTable({
  points,
  changes,
  unit,
  baseline,
  figure,
  reload,
}: {
  points: TrendPoint[];
  changes: Mark[];
  unit: string;
  baseline: string | null;
  figure: string;
  reload: () => void;
}) {
  const t = useWords();
  const isOperator = useIsOperator();
  const [isWhole, setWhole] = useState(false);
  const latest = points.map((point, index) => ({ point, index })).reverse();
  const shown = isWhole ? latest : latest.slice(0, FIRST);
  const set = (id: string, on: boolean) => {
    void annotate(id, { baseline: on }).then(reload);
  };
  return (
    <section class="card">
      <div class="scroll" tabIndex={0} role="region" aria-label={figure}>
        <table class="plain texts points">
          <thead>
            <tr>
              <th scope="col">{t.trends.run}</th>
              <th scope="col">{t.columns.started}</th>
              <th scope="col">{t.columns.version}</th>
              <th scope="col">{t.columns.target}</th>
              <th scope="col" class="number">
                {t.trends.value}
              </th>
              <th scope="col">{t.trends.change}</th>
              {isOperator && <td />}
            </tr>
          </thead>
          <tbody>
            {shown.map(({ point, index }) => {
              const change = changes.find((mark) => mark.index === index);
              const isBase = point.id === baseline;
              return (
                <tr key={point.id}>
                  <th scope="row">
                    <a href={runAddress(point.id)}>{runName({ name: point.name ?? point.id })}</a>
                  </th>
                  <td>
                    <When iso={point.started} />
                  </td>
                  <td>{point.version}</td>
                  <td>{targetName(point.target, t.words.ownBroker)}</td>
                  <td class="number">{inUnit(point.value, unit)}</td>
                  <td>
                    {change !== undefined && (
                      <Chip tone="warn">
                        {change.percent === null
                          ? t.trends.change
                          : t.trends.against(signed(change.percent, "percent", ""))}
                      </Chip>
                    )}
                  </td>
                  {isOperator && (
                    <td class="number">
                      <button
                        type="button"
                        class="link-button"
                        onClick={() => set(point.id, !isBase)}
                      >
                        {isBase ? t.run.unsetBaseline : t.run.setBaseline}
                      </button>
                    </td>
                  )}
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      {!isWhole && latest.length > FIRST && (
        <button type="button" class="button" onClick={() => setWhole(true)}>
          {t.trends.showAll(latest.length)}
        </button>
      )}
    </section>
  );
}
