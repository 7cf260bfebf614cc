// The runs that are compared.

import { useLanguage, useWords } from "../i18n";
import { Icon } from "../parts/icon";
import { RunChip } from "../parts/verdict";
import { When } from "../parts/when";
import { runAddress } from "../router";
import { span, targetName, runName } from "../show";
import type { Run } from "../types";

export function Sides({
  runs,
  remove,
  first,
}: {
  runs: Run[];
  remove: (id: string) => void;
  first: (id: string) => void;
}) {
  const t = useWords();
  const language = useLanguage();
  return (
    <ol class="sides">
      {runs.map((run, index) => (
        <li key={run.id} class={`card c${index + 1}`}>
          <div class="side-head">
            <span class="side-letter">{letter(index)}</span>
            <a class="run-name" href={runAddress(run.id)}>
              {runName(run)}
            </a>
            <button
              type="button"
              class="icon-button"
              aria-label={t.compare.removeSide(runName(run))}
              onClick={() => remove(run.id)}
            >
              <Icon name="cross" />
            </button>
          </div>
          <p class="facts">
            <span>{targetName(run.target, t.words.ownBroker)}</span>
            <span>
              <When iso={run.started} />
            </span>
            <span>{span(run.duration_s, language)}</span>
          </p>
          <div class="side-foot">
            <RunChip row={run} />
            {index === 0 ? (
              <span class="quiet">{t.compare.first}</span>
            ) : (
              <button type="button" class="link-button" onClick={() => first(run.id)}>
                {t.compare.makeFirst}
              </button>
            )}
          </div>
        </li>
      ))}
    </ol>
  );
}

// The short name of a side.
export function letter(index: number): string {
  return String.fromCharCode(65 + index);
}
