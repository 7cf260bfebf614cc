// The latest runs in short.

import { useWords } from "../i18n";
import { useIsOperator } from "../machine";
import { Empty } from "../parts/notice";
import { RunChip } from "../parts/verdict";
import { When } from "../parts/when";
import { runAddress } from "../router";
import { perSecond, targetName, us, runName } from "../show";
import type { Row } from "../types";

export function Recent({ rows }: { rows: Row[] }) {
  const t = useWords();
  const isOperator = useIsOperator();
  if (rows.length === 0) {
    return (
      <Empty icon="play" title={t.home.emptyTitle} text={t.home.emptyText}>
        {isOperator && (
          <a class="button primary" href="/new?scenario=symmetric&step=2">
            {t.home.first}
          </a>
        )}
      </Empty>
    );
  }
  return (
    <ul class="recent">
      {rows.map((row) => (
        <li key={row.id}>
          <div class="recent-name">
            <a class="run-name" href={runAddress(row.id)}>
              {runName(row)}
            </a>
            <p class="facts">
              <span>{targetName(row.target, t.words.ownBroker)}</span>
              <span>
                <When iso={row.started} />
              </span>
            </p>
          </div>
          <dl class="recent-figures">
            <div>
              <dt>{t.columns.achieved_tps}</dt>
              <dd>
                {perSecond(row.achieved_tps)}
                <small>{t.columnUnits["achieved_tps"]}</small>
              </dd>
            </div>
            <div>
              <dt>{t.columns.e2e_latency_us_p99}</dt>
              <dd>{us(row.e2e_latency_us_p99)}</dd>
            </div>
          </dl>
          <RunChip row={row} />
        </li>
      ))}
    </ul>
  );
}
