// The run under way and those that wait.

import { useLanguage, useWords } from "../i18n";
import { useIsOperator } from "../machine";
import { Icon } from "../parts/icon";
import { RunProgress } from "../parts/progress";
import { StopButton } from "../parts/stop";
import { runAddress } from "../router";
import { cancel } from "../run-actions";
import { targetName, runName } from "../show";
import type { Queue, Row } from "../types";

export function NowCard({ queue, changed }: { queue: Queue; changed: () => void }) {
  const t = useWords();
  const language = useLanguage();
  const { running, queued } = queue;
  const heldBy = (language === "zh" ? queue.held_by_zh : null) ?? queue.held_by;
  return (
    <>
      {running !== null && <Running row={running} />}
      {running === null && heldBy !== null && (
        <p class="notice warn">
          <Icon name="clock" />
          <span>{t.home.held(heldBy)}</span>
        </p>
      )}
      {running === null && heldBy === null && (
        <div class="idle">
          <span class="idle-dot" />
          <div>
            <b>{t.home.idle}</b>
            <p>{t.home.idleHint}</p>
          </div>
        </div>
      )}
      {queued.length > 0 && (
        <>
          <h3>{t.home.queue}</h3>
          <ol class="queue">
            {queued.map((row, index) => (
              <Waiting
                key={row.id}
                row={row}
                position={row.position ?? index + 1}
                changed={changed}
              />
            ))}
          </ol>
        </>
      )}
    </>
  );
}

function About({ row }: { row: Row }) {
  const t = useWords();
  return (
    <p class="facts">
      <span>{t.kinds[row.kind] ?? row.kind}</span>
      {row.scenario !== runName(row) && <span>{row.scenario}</span>}
      <span>{targetName(row.target, t.words.ownBroker)}</span>
    </p>
  );
}

function Running({ row }: { row: Row }) {
  const t = useWords();
  const isOperator = useIsOperator();
  return (
    <div class="running">
      <div class="running-head">
        <div>
          <a class="run-name" href={runAddress(row.id)}>
            {runName(row)}
          </a>
          <About row={row} />
        </div>
        <div class="buttons">
          <a class="button" href={runAddress(row.id)}>
            {t.home.watch}
          </a>
          {isOperator && <StopButton id={row.id} />}
        </div>
      </div>
      <RunProgress row={row} />
    </div>
  );
}

function Waiting({ row, position, changed }: { row: Row; position: number; changed: () => void }) {
  const t = useWords();
  const isOperator = useIsOperator();
  return (
    <li>
      <span class="position">{t.home.position(position)}</span>
      <div>
        <a href={runAddress(row.id)}>{runName(row)}</a>
        <About row={row} />
      </div>
      {isOperator && (
        <button
          type="button"
          class="icon-button"
          aria-label={`${t.run.cancel}: ${runName(row)}`}
          title={t.run.cancel}
          onClick={() => {
            void cancel(row.id, changed);
          }}
        >
          <Icon name="cross" />
        </button>
      )}
    </li>
  );
}
