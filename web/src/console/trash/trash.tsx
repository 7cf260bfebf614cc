// Deleted runs: taken back, or removed permanently.

import { useCallback, useState } from "preact/hooks";

import { get } from "../api";
import { useChanges } from "../changes";
import { useLanguage, useWords } from "../i18n";
import { useLoad } from "../load";
import { useIsOperator } from "../machine";
import { DangerButtons, Dialog } from "../parts/dialog";
import { Icon } from "../parts/icon";
import { Empty, Failure, Loading } from "../parts/notice";
import { VerdictOrState } from "../records/verdict-cell";
import { When } from "../parts/when";
import { purge, restore } from "../run-actions";
import { runName, size, span, targetName } from "../show";
import { useTitle } from "../title";
import type { Trash, TrashRow } from "../types";

// What is to be removed permanently, once that is confirmed.
type Doomed = { row: TrashRow } | { all: true };

export function TrashPage() {
  const t = useWords();
  const isOperator = useIsOperator();
  const trash = useLoad<Trash>("trash", (signal) => get(["trash"], null, signal), true);
  const [doomed, setDoomed] = useState<Doomed | null>(null);
  useTitle(t.trash.title);
  useChanges(
    useCallback(
      (change) => {
        if (change.type === "removed" || change.type === "again") trash.reload();
      },
      [trash.reload],
    ),
  );
  const { data } = trash;
  return (
    <>
      <nav class="crumbs" aria-label={t.nav.records}>
        <a href="/runs">{t.nav.records}</a>
        <Icon name="right" />
        <span>{t.trash.title}</span>
      </nav>
      <div class="page-head">
        <h1>{t.trash.title}</h1>
        {data !== null && data.total > 0 && (
          <span class="quiet">
            {t.records.total(data.total)}
            {data.bytes !== null && `, ${size(data.bytes)}`}
          </span>
        )}
        <span class="filler" />
        {isOperator && data !== null && data.total > 0 && (
          <button type="button" class="button danger" onClick={() => setDoomed({ all: true })}>
            <Icon name="trash" />
            {t.trash.empty}
          </button>
        )}
      </div>
      {trash.error && <Failure error={trash.error} retry={trash.reload} />}
      {data === null && !trash.error && <Loading lines={6} />}
      {data !== null && data.total === 0 && (
        <Empty icon="trash" title={t.trash.emptyTitle} text={t.trash.emptyText}>
          <a class="button" href="/runs">
            {t.home.allRecords}
          </a>
        </Empty>
      )}
      {data !== null && data.rows.length > 0 && (
        <ul class="trash card">
          {data.rows.map((row) => (
            <Deleted
              key={row.id}
              row={row}
              isLocked={!isOperator}
              restored={() => void restore([row.id]).then(trash.reload)}
              purged={() => setDoomed({ row })}
            />
          ))}
        </ul>
      )}
      {data !== null && data.total > data.rows.length && (
        <p class="quiet">{t.trash.more(data.rows.length)}</p>
      )}
      {data !== null && doomed !== null && (
        <Confirm
          doomed={doomed}
          trash={data}
          close={() => setDoomed(null)}
          act={() => {
            setDoomed(null);
            void purge("row" in doomed ? doomed.row.id : null).then(trash.reload);
          }}
        />
      )}
    </>
  );
}

function Deleted({
  row,
  isLocked,
  restored,
  purged,
}: {
  row: TrashRow;
  isLocked: boolean;
  restored: () => void;
  purged: () => void;
}) {
  const t = useWords();
  const language = useLanguage();
  const name = runName(row);
  return (
    <li>
      <div class="trash-run">
        <b>{name}</b>
        <p class="facts">
          <VerdictOrState row={row} />
          {row.scenario !== "" && row.scenario !== name && <span>{row.scenario}</span>}
          {row.target !== "" && <span>{targetName(row.target, t.words.ownBroker)}</span>}
          {row.started !== null && (
            <span>
              <When iso={row.started} />
            </span>
          )}
          {row.duration_s !== null && <span>{span(row.duration_s, language)}</span>}
          {row.bytes !== null && <span>{size(row.bytes)}</span>}
        </p>
        <p class="quiet">
          {row.deleted !== null && (
            <>
              {t.trash.deleted} <When iso={row.deleted} />
            </>
          )}
        </p>
      </div>
      {!isLocked && (
        <div class="buttons">
          <button type="button" class="button" onClick={restored} aria-label={t.trash.restoreOf(name)}>
            <Icon name="repeat" />
            {t.trash.restore}
          </button>
          <button
            type="button"
            class="icon-button"
            onClick={purged}
            aria-label={t.trash.purgeOf(name)}
            title={t.trash.purge}
          >
            <Icon name="trash" />
          </button>
        </div>
      )}
    </li>
  );
}

function Confirm({
  doomed,
  trash,
  close,
  act,
}: {
  doomed: Doomed;
  trash: Trash;
  close: () => void;
  act: () => void;
}) {
  const t = useWords();
  const [count, bytes] = "row" in doomed ? [1, doomed.row.bytes] : [trash.total, trash.bytes];
  const title = "row" in doomed ? t.trash.purgeTitle(runName(doomed.row)) : t.trash.emptyAsk;
  return (
    <Dialog title={title} close={close}>
      <p>{t.trash.confirm(count, bytes === null ? null : size(bytes))}</p>
      <DangerButtons keep={t.trash.keep} label={t.trash.purge} close={close} act={act} />
    </Dialog>
  );
}
