// A bridge is tested and made.

import { useState } from "preact/hooks";

import { ApiError } from "../api";
import { useLanguage, useWords } from "../i18n";
import { Choice } from "../parts/choice";
import { Dialog } from "../parts/dialog";
import { Complaint, Field, PasswordInput, TextInput } from "../parts/field";
import { Icon } from "../parts/icon";
import { say } from "../parts/toast";
import { errorText } from "../said";
import { act } from "./api";
import { NEW_BRIDGE, NEW_RULE, configurationOf, faultsOf } from "./bridge-draft";
import type { BridgeDraft, BridgeFault, RuleDraft } from "./bridge-draft";
import { TrialResult } from "./bridge-trial";
import type { BridgeMade, BridgeTrial } from "./types";

// Texts that stand in a field of their own.
const TEXTS = ["name", "address", "clientId", "connections", "ca", "user"] as const;
const EXAMPLES: Partial<Record<(typeof TEXTS)[number], string>> = {
  name: "cloud",
  address: "mqtts://broker.example:8883",
  ca: "/etc/tacho/cloud-ca.pem",
};
// A form has so many; files have as many as are wanted.
const RULES_MAX = 32;

export function BridgeForm({ close, done }: { close: () => void; done: () => void }) {
  const t = useWords();
  const language = useLanguage();
  const words = t.broker.bridges.form;
  const [draft, setDraft] = useState<BridgeDraft>(NEW_BRIDGE);
  const [trial, setTrial] = useState<BridgeTrial | null>(null);
  const [made, setMade] = useState<BridgeMade | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const [isBusy, setBusy] = useState<"test" | "make" | null>(null);
  const put = (part: Partial<BridgeDraft>) => {
    setDraft((old) => ({ ...old, ...part }));
    setTrial(null);
  };
  const faults = faultsOf(draft);
  // A field that was not touched is not called wrong.
  const of = (name: BridgeFault | (typeof TEXTS)[number]) => {
    const fault = faults.find((one) => one === name);
    const isTouched = name !== "rules" && draft[name] !== "";
    return fault !== undefined && isTouched ? words.faults[fault] : undefined;
  };
  const attempt = async (what: "test" | "make", work: () => Promise<void>) => {
    setBusy(what);
    setError(null);
    try {
      await work();
    } catch (caught) {
      setError(caught instanceof ApiError ? caught : new ApiError(String(caught), 0));
    } finally {
      setBusy(null);
    }
  };
  const test = () =>
    attempt("test", async () => {
      setTrial(null);
      setTrial(await act<BridgeTrial>("POST", ["bridge-test"], {}, configurationOf(draft)));
    });
  const make = () =>
    attempt("make", async () => {
      const answer = await act<BridgeMade>("POST", ["bridges"], {}, configurationOf(draft));
      say(words.made(answer.name));
      if (answer.warnings.length === 0 && answer.lasting) done();
      else setMade(answer);
    });
  if (made !== null) return <Made made={made} done={done} />;
  return (
    <Dialog title={words.title} close={close} wide>
      <p class="field-help">{words.help}</p>
      <div class="field-grid two bridge-form">
        {TEXTS.map((name) => (
          <Field key={name} label={words.fields[name]} help={words.helps[name]} error={of(name)}>
            {(ids) => (
              <TextInput
                ids={ids}
                value={draft[name]}
                placeholder={EXAMPLES[name]}
                change={(text) => put({ [name]: text })}
              />
            )}
          </Field>
        ))}
        <Field label={words.password} help={words.passwordHelp}>
          {(ids) => (
            <PasswordInput
              ids={ids}
              value={draft.password}
              change={(password) => put({ password })}
            />
          )}
        </Field>
        <Choice
          legend={t.broker.websocket.version}
          value={draft.version}
          options={(["5", "3.1.1"] as const).map((value) => ({
            value,
            label: `MQTT ${value === "5" ? "5.0" : value}`,
          }))}
          change={(version) => put({ version })}
        />
      </div>
      <Rules rules={draft.rules} change={(rules) => put({ rules })} />
      {error !== null && <Complaint>{errorText(error, language)}</Complaint>}
      {trial !== null && <TrialResult trial={trial} />}
      <div class="buttons end">
        <button type="button" class="button" onClick={close}>
          {t.words.cancel}
        </button>
        <button
          type="button"
          class="button"
          disabled={isBusy !== null || faults.length > 0}
          onClick={() => {
            void test();
          }}
        >
          {isBusy === "test" ? words.testing : words.test}
        </button>
        <button
          type="button"
          class="button primary"
          disabled={isBusy !== null || faults.length > 0}
          onClick={() => {
            void make();
          }}
        >
          {words.make}
        </button>
      </div>
    </Dialog>
  );
}

// A bridge was made, and there is something to know about it.
function Made({ made, done }: { made: BridgeMade; done: () => void }) {
  const t = useWords();
  const words = t.broker.bridges.form;
  return (
    <Dialog title={words.made(made.name)} close={done}>
      {!made.lasting && <p class="notice warn">{words.notLasting}</p>}
      {made.warnings.map((warning) => (
        <p key={warning} class="notice warn" lang="en">
          {warning}
        </p>
      ))}
      <div class="buttons end">
        <button type="button" class="button primary" onClick={done}>
          {t.words.close}
        </button>
      </div>
    </Dialog>
  );
}

function Rules({ rules, change }: { rules: RuleDraft[]; change: (rules: RuleDraft[]) => void }) {
  const t = useWords();
  const words = t.broker.bridges.form;
  const put = (index: number, part: Partial<RuleDraft>) =>
    change(rules.map((rule, at) => (at === index ? { ...rule, ...part } : rule)));
  return (
    <fieldset class="bridge-rules">
      <legend>{words.rules}</legend>
      <p class="field-help">{words.rulesHelp}</p>
      {rules.map((rule, index) => (
        <div class="bridge-rule" key={index}>
          <label class="inline-field narrow">
            <span>{words.direction}</span>
            <select
              value={rule.direction}
              onChange={(event) =>
                put(index, { direction: event.currentTarget.value as RuleDraft["direction"] })
              }
            >
              <option value="egress">{words.egress}</option>
              <option value="ingress">{words.ingress}</option>
            </select>
          </label>
          <RuleText
            label={t.broker.filter}
            value={rule.filter}
            example="sensors/#"
            change={(filter) => put(index, { filter })}
          />
          <RuleText
            label={words.topic}
            value={rule.topic}
            example="sites/7/${topic}"
            change={(topic) => put(index, { topic })}
          />
          <label class="inline-field narrow">
            <span>QoS</span>
            <select
              value={rule.qos}
              onChange={(event) => put(index, { qos: event.currentTarget.value as RuleDraft["qos"] })}
            >
              <option value="keep">{words.keep}</option>
              {["0", "1", "2"].map((qos) => (
                <option key={qos} value={qos}>
                  {qos}
                </option>
              ))}
            </select>
          </label>
          <button
            type="button"
            class="icon-button"
            disabled={rules.length === 1}
            aria-label={`${t.words.remove}: ${words.rules} ${index + 1}`}
            onClick={() => change(rules.filter((_, at) => at !== index))}
          >
            <Icon name="cross" />
          </button>
        </div>
      ))}
      <button
        type="button"
        class="button small"
        disabled={rules.length >= RULES_MAX}
        onClick={() => change([...rules, NEW_RULE])}
      >
        <Icon name="plus" />
        {words.addRule}
      </button>
    </fieldset>
  );
}

function RuleText({
  label,
  value,
  example,
  change,
}: {
  label: string;
  value: string;
  example: string;
  change: (text: string) => void;
}) {
  return (
    <label class="inline-field">
      <span>{label}</span>
      <input
        type="text"
        value={value}
        placeholder={example}
        autocomplete="off"
        spellcheck={false}
        onInput={(event) => change(event.currentTarget.value)}
      />
    </label>
  );
}
