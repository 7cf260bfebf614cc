// The choice of one more run.

import { useState } from "preact/hooks";

import { get } from "../api";
import { useLanguage, useWords } from "../i18n";
import { useLoad } from "../load";
import { Dialog } from "../parts/dialog";
import { Failure, Loading } from "../parts/notice";
import { RunChip } from "../parts/verdict";
import { moment, targetName, runName } from "../show";
import type { Page } from "../types";

const SHOWN = 12;

export function Pick({
  not,
  scenario,
  pick,
  close,
}: {
  not: string[];
  scenario: string;
  pick: (id: string) => void;
  close: () => void;
}) {
  const t = useWords();
  const language = useLanguage();
  const [text, setText] = useState("");
  const asked = new URLSearchParams({
    sort: "-started",
    limit: String(SHOWN + not.length),
    state: "finished",
    ...(text === "" ? {} : { q: text }),
    ...(scenario === "" ? {} : { scenario }),
  });
  const page = useLoad<Page>(asked.toString(), (signal) => get(["runs"], asked, signal), true);
  const rows = (page.data?.rows ?? []).filter(({ id }) => !not.includes(id)).slice(0, SHOWN);
  return (
    <Dialog title={t.compare.pickTitle} close={close} wide>
      <input
        type="search"
        value={text}
        placeholder={t.compare.pickSearch}
        aria-label={t.compare.pickSearch}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      {page.error && <Failure error={page.error} retry={page.reload} />}
      {page.data === null && !page.error && <Loading lines={6} />}
      {page.data !== null && rows.length === 0 && <p class="quiet">{t.records.noneTitle}</p>}
      <ul class="pick">
        {rows.map((row) => (
          <li key={row.id}>
            <button type="button" onClick={() => pick(row.id)}>
              <span class="pick-name">
                <b>{runName(row)}</b>
                <small>
                  {row.scenario} · {targetName(row.target, t.words.ownBroker)} ·{" "}
                  {moment(row.started, language)}
                </small>
              </span>
              <RunChip row={row} />
            </button>
          </li>
        ))}
      </ul>
    </Dialog>
  );
}
