// The last step: what the test will do, what speaks against it, and the same without the console.

import { get } from "../api";
import { useLanguage, useWords } from "../i18n";
import { useLoad } from "../load";
import { CopyText } from "../parts/copy";
import { Icon } from "../parts/icon";
import { targetName } from "../show";
import type { Preview, Queue } from "../types";
import type { Draft } from "./draft";
import { Offered } from "./offered";
import type { PreviewState } from "./use-preview";

export function ReviewStep({
  draft,
  state,
  isStarting,
  isChosen,
  isWhole,
  start,
  show,
}: {
  draft: Draft;
  state: PreviewState;
  isStarting: boolean;
  isChosen: boolean;
  isWhole: boolean;
  start: () => void;
  show: (field: string) => void;
}) {
  const t = useWords();
  const { preview, problems } = state;
  const canStart = isChosen && problems.length === 0 && !state.isStale && !isStarting;
  return (
    <>
      <section class="card start-card" aria-labelledby="review">
        {isWhole && (
          <>
            <h2 id="review">{t.make.willDo}</h2>
            <p class="facts">
              <span>{t.make.commands[draft.command]}</span>
              {(draft.name || draft.scenario) !== "" && (
                <span>{draft.name || draft.scenario}</span>
              )}
              <span>
                {draft.command === "compare"
                  ? draft.brokers.join(", ")
                  : targetName(draft.broker, t.words.ownBroker)}
              </span>
            </p>
            <Offered state={state} isChosen={isChosen} command={draft.command} />
          </>
        )}
        {!isWhole && <h2 id="review">{t.make.steps[2]}</h2>}
        <Problems state={state} show={show} />
        <Warnings preview={preview} />
        <div class="start-row">
          <button type="button" class="button primary large" disabled={!canStart} onClick={start}>
            <Icon name="play" />
            {isStarting ? t.make.starting : t.make.start}
          </button>
          <QueueHint />
        </div>
      </section>
      {preview !== null && (
        <section class="card">
          {preview.command_line !== null && (
            <CopyText title={t.make.commandLine} text={preview.command_line} />
          )}
          {preview.scenario_toml !== null && (
            <CopyText title={t.make.scenarioFile} text={preview.scenario_toml} />
          )}
        </section>
      )}
    </>
  );
}

function Problems({ state, show }: { state: PreviewState; show: (field: string) => void }) {
  const t = useWords();
  const { problems } = state;
  if (problems.length === 0) return null;
  return (
    <div class="notice bad" role="alert">
      <Icon name="warning" />
      <div>
        <b>{t.make.problems(problems.length)}</b>
        <ul>
          {problems.map(({ field, message }) => (
            <li key={`${field} ${message}`}>
              {message}{" "}
              {field !== null && (
                <button type="button" class="link-button" onClick={() => show(field)}>
                  {t.make.goTo}
                </button>
              )}
            </li>
          ))}
        </ul>
      </div>
    </div>
  );
}

// Of this load on this machine.
export function Warnings({ preview }: { preview: Preview | null }) {
  const t = useWords();
  const language = useLanguage();
  const inChinese = language === "zh" ? preview?.warnings_zh : undefined;
  const warnings = inChinese ?? preview?.warnings ?? [];
  if (warnings.length === 0) return null;
  return (
    <div class="notice warn">
      <Icon name="warning" />
      <div>
        <b>{t.make.warnings}</b>
        <ul {...(inChinese === undefined ? { lang: "en" } : {})}>
          {[...new Set(warnings)].map((text) => (
            <li key={text}>{text}</li>
          ))}
        </ul>
      </div>
    </div>
  );
}

function QueueHint() {
  const t = useWords();
  const language = useLanguage();
  const queue = useLoad<Queue>("queue", (signal) => get(["queue"], null, signal));
  if (queue.data === null) return null;
  const ahead =
    queue.data.queued.length + (queue.data.running === null && queue.data.held_by === null ? 0 : 1);
  return (
    <span class="quiet" lang={language}>
      {ahead === 0 ? t.make.startsNow : t.make.startsLater(ahead)}
    </span>
  );
}
