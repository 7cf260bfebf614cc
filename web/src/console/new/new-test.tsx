// Configuring and starting a test: in three steps, or all on one page.

import { useEffect, useState } from "preact/hooks";

import { ApiError, get, send } from "../api";
import { useWords } from "../i18n";
import { useLoad } from "../load";
import { useIsOperator } from "../machine";
import { Icon } from "../parts/icon";
import { Empty, Failure, Loading } from "../parts/notice";
import { complain, say } from "../parts/toast";
import { navigate, runAddress, usePlace } from "../router";
import { useStore } from "../store";
import { useTitle } from "../title";
import type { Catalogue, Run, Started, Variable } from "../types";
import { fromRequest, toQuery } from "./draft";
import { Offered } from "./offered";
import { ReviewStep, Warnings } from "./review-step";
import { ScenarioStep } from "./scenario-step";
import { SettingsStep } from "./settings-step";
import { Steps } from "./steps";
import { uploads } from "./uploads";
import { useDraft } from "./use-draft";
import { usePreview } from "./use-preview";

export function NewTest() {
  const { query } = usePlace();
  const from = query.get("from");
  return from === null ? <Form /> : <From id={from} key={from} />;
}

// Fills the form with the request of an earlier run.
function From({ id }: { id: string }) {
  const t = useWords();
  const run = useLoad<Run>(`run ${id}`, (signal) => get(["runs", id], null, signal));
  useEffect(() => {
    if (run.data === null) return;
    const request = run.data.request ?? { scenario: run.data.scenario };
    const parts = toQuery(fromRequest(request));
    parts.set("step", "2");
    navigate(`/new?${parts}`, { replace: true });
  }, [run.data]);
  return (
    <>
      <div class="page-head">
        <h1>{t.make.again}</h1>
      </div>
      {run.error ? <Failure error={run.error} retry={run.reload} /> : <Loading lines={6} />}
    </>
  );
}

function Form() {
  const t = useWords();
  const isOperator = useIsOperator();
  const { draft, change, go, step, isOnePage } = useDraft();
  const files = useStore(uploads);
  const [isStarting, setStarting] = useState(false);
  const catalogue = useLoad<Catalogue>("catalogue", (signal) => get(["scenarios"], null, signal));
  const isChosen = draft.scenario !== "" || draft.upload !== "";
  const state = usePreview(draft, isChosen);
  useTitle(t.make.title);

  const uploaded = files.find(({ upload }) => upload === draft.upload);
  const scenario = catalogue.data?.scenarios.find(({ name }) => name === draft.scenario);
  const variables: Variable[] =
    draft.upload === ""
      ? (scenario?.variables ?? state.preview?.variables ?? [])
      : (uploaded?.variables ??
        Object.entries(draft.variables).map(([name, value]) => plain(name, value)));

  const start = async () => {
    setStarting(true);
    try {
      const started = await send<Started>("POST", ["runs"], state.request);
      navigate(runAddress(started.id));
      if (started.state === "queued") say(t.make.queuedAt(started.position ?? 1));
    } catch (error) {
      complain(error);
      if (error instanceof ApiError && error.field !== null) {
        const { field } = error;
        showField(field, () => go(stepOf(field)));
      }
    } finally {
      setStarting(false);
    }
  };

  if (!isOperator) return <Empty icon="info" title={t.make.title} text={t.make.viewer} />;
  if (catalogue.data === null) {
    return (
      <>
        <div class="page-head">
          <h1>{t.make.title}</h1>
        </div>
        {catalogue.error ? (
          <Failure error={catalogue.error} retry={catalogue.reload} />
        ) : (
          <Loading lines={8} />
        )}
      </>
    );
  }
  const scenarioStep = (
    <ScenarioStep
      catalogue={catalogue.data}
      draft={draft}
      change={change}
      problems={state.problems}
      chosen={isOnePage ? undefined : () => go(2)}
    />
  );
  const settingsStep = (
    <SettingsStep
      draft={draft}
      change={change}
      variables={variables}
      problems={state.problems}
      uploaded={uploaded}
      isChosen={isChosen}
    />
  );
  const review = (
    <ReviewStep
      draft={draft}
      state={state}
      isStarting={isStarting}
      isChosen={isChosen}
      isWhole={!isOnePage}
      start={() => {
        void start();
      }}
      show={(field) =>
        showField(field, () => {
          if (!isOnePage) go(stepOf(field));
        })
      }
    />
  );
  return (
    <>
      <div class="page-head">
        <h1>{t.make.title}</h1>
        <label class="switch">
          <input
            type="checkbox"
            role="switch"
            checked={isOnePage}
            onChange={(event) =>
              go(event.currentTarget.checked ? 1 : step, event.currentTarget.checked)
            }
          />
          <span>{t.make.onePage}</span>
        </label>
      </div>
      {!isOnePage && <Steps step={step} go={go} isChosen={isChosen} />}
      {state.error && <Failure error={state.error} />}
      <div class={isOnePage || step === 2 ? "form-columns" : "form-single"}>
        <form
          class="form"
          noValidate
          onSubmit={(event) => {
            event.preventDefault();
            if (isOnePage || step === 3) void start();
            else go(step + 1);
          }}
        >
          {isOnePage ? (
            <>
              {scenarioStep}
              {settingsStep}
              {review}
            </>
          ) : (
            [scenarioStep, settingsStep, review][step - 1]
          )}
          {!isOnePage && step < 3 && (
            <div class="buttons form-foot">
              {step > 1 && (
                <button type="button" class="button" onClick={() => go(step - 1)}>
                  <Icon name="left" />
                  {t.words.back}
                </button>
              )}
              <button type="submit" class="button primary" disabled={!isChosen}>
                {t.words.next}
                <Icon name="right" />
              </button>
              {!isChosen && <span class="quiet">{t.make.noScenario}</span>}
            </div>
          )}
          {!isOnePage && step === 3 && (
            <button type="button" class="button back" onClick={() => go(2)}>
              <Icon name="left" />
              {t.words.back}
            </button>
          )}
        </form>
        {(isOnePage || step === 2) && (
          <aside class="form-aside" aria-label={t.make.willDo}>
            <div class="card">
              <h2>{t.make.willDo}</h2>
              <Offered state={state} isChosen={isChosen} command={draft.command} />
            </div>
            {!isOnePage && <Warnings preview={state.preview} />}
          </aside>
        )}
      </div>
    </>
  );
}

function plain(name: string, value: string): Variable {
  return {
    name,
    kind: "text",
    unit: null,
    default: value,
    minimum: null,
    maximum: null,
    choices: null,
    help: "",
  };
}

// The step that has a field.
function stepOf(field: string): number {
  return /^(command|scenario|upload|data)\b/.test(field) ? 1 : 2;
}

// Brings the field of a problem into view, with the keyboard in it.
function showField(field: string, goToForm: () => void): void {
  goToForm();
  requestAnimationFrame(() =>
    requestAnimationFrame(() => {
      const name = field.replace(/\.(\d+)$/, "[$1]");
      const list = name.replace(/\[\d+\]$/, "");
      const place = [name, list]
        .map((one) => document.querySelector(`[data-field="${CSS.escape(one)}"]`))
        .find((found) => found !== null);
      place?.scrollIntoView({ block: "center" });
      place?.querySelector<HTMLElement>("input, select, textarea")?.focus();
    }),
  );
}
