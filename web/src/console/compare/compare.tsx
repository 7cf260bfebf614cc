// Two to five runs beside each other.

import { useState } from "preact/hooks";

import { get } from "../api";
import { useWords } from "../i18n";
import { useLoad } from "../load";
import { Icon } from "../parts/icon";
import { Empty, Failure, Loading } from "../parts/notice";
import { query, usePlace } from "../router";
import { runName } from "../show";
import { useTitle } from "../title";
import type { Comparison, Run } from "../types";
import { Differences } from "./differences";
import { FigureTable } from "./figure-table";
import { Pick } from "./pick";
import { Sides } from "./sides";
import { VerdictChip } from "../parts/verdict";

const MOST = 5;

export function Compare() {
  const t = useWords();
  const place = usePlace();
  const ids = [
    ...new Set((place.query.get("ids") ?? "").split(",").filter((id) => id !== "")),
  ].slice(0, MOST);
  const [isPicking, setPicking] = useState(false);
  const key = ids.join(",");
  const asked = new URLSearchParams({ ids: key });
  const comparison = useLoad<Comparison>(ids.length >= 2 ? key : null, (signal) =>
    get(["compare"], asked, signal),
  );
  const runs = useLoad<Run[]>(ids.length > 0 ? `runs ${key}` : null, (signal) =>
    Promise.all(ids.map((id) => get<Run>(["runs", id], null, signal))),
  );
  useTitle(t.compare.title);
  const choose = (next: string[]) => query({ ids: next.join(",") });
  const shown = runs.data ?? [];
  return (
    <>
      <div class="page-head">
        <div>
          <h1>{t.compare.title}</h1>
          <p class="lead">{t.compare.lead}</p>
        </div>
        {ids.length < MOST && (
          <button type="button" class="button" onClick={() => setPicking(true)}>
            <Icon name="plus" />
            {t.compare.add}
          </button>
        )}
      </div>
      {runs.error && <Failure error={runs.error} retry={runs.reload} />}
      {shown.length > 0 && (
        <Sides
          runs={shown}
          remove={(id) => choose(ids.filter((one) => one !== id))}
          first={(id) => choose([id, ...ids.filter((one) => one !== id)])}
        />
      )}
      {ids.length < 2 && (
        <Empty icon="columns" title={t.compare.needTwo} text={t.compare.needTwoText}>
          <button type="button" class="button primary" onClick={() => setPicking(true)}>
            {t.compare.add}
          </button>
        </Empty>
      )}
      {ids.length >= 2 && comparison.error && (
        <Failure error={comparison.error} retry={comparison.reload} />
      )}
      {ids.length >= 2 && comparison.data === null && !comparison.error && <Loading lines={10} />}
      {comparison.data !== null && ids.length >= 2 && (
        <Compared
          comparison={comparison.data}
          names={ids.map((id) => runName(shown.find((run) => run.id === id) ?? { name: id }))}
        />
      )}
      {isPicking && (
        <Pick
          not={ids}
          scenario={shown[0]?.scenario ?? ""}
          close={() => setPicking(false)}
          pick={(id) => {
            setPicking(false);
            choose([...ids, id]);
          }}
        />
      )}
    </>
  );
}

function Compared({ comparison, names }: { comparison: Comparison; names: string[] }) {
  const t = useWords();
  return (
    <>
      <p class="so-far">
        <b>{t.compare.verdict}</b>
        <VerdictChip verdict={comparison.verdict} />
        {!comparison.interleaved && <span class="quiet">{t.compare.notInterleaved}</span>}
      </p>
      {comparison.points.every(({ figures }) => figures.length === 0) && (
        <p class="notice warn">
          <Icon name="warning" />
          <span>{t.compare.noFigures}</span>
        </p>
      )}
      {comparison.points.map(
        ({ label, figures }) =>
          figures.length > 0 && (
            <FigureTable key={label} label={label} figures={figures} names={names} />
          ),
      )}
      <div class="figure-columns">
        <Differences
          title={t.compare.settings}
          differences={comparison.scenario_differences}
          names={names}
        />
        <Differences
          title={t.compare.environment}
          differences={comparison.environment}
          names={names}
        />
      </div>
      {comparison.notes.length > 0 && (
        <section class="card">
          <h2>{t.compare.notes}</h2>
          <ul class="prose" lang="en">
            {comparison.notes.map((note) => (
              <li key={note}>{note}</li>
            ))}
          </ul>
        </section>
      )}
    </>
  );
}
