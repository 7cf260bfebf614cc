// Fields made from the variables of a scenario.

import { useLanguage, useWords } from "../i18n";
import { Choice } from "../parts/choice";
import { Field, TextInput } from "../parts/field";
import { helpOf, labelOf, unitOf } from "../scenarios";
import type { Variable } from "../types";
import { problemOf } from "./draft";
import { boundsOf } from "./bounds";
import type { FormPart } from "./settings-step";

// Up to so many choices are buttons side by side; more are a list.
const BUTTONS_MAX = 4;

export function VariablesForm({
  draft,
  change,
  problems,
  variables: all,
}: FormPart & { variables: Variable[] }) {
  const t = useWords();
  // Other tests than single runs have times of their own, in a part of the form of their own.
  const isTimed = ({ name }: Variable) => name === "duration" || name === "warmup";
  const variables = draft.command === "run" ? all : all.filter((variable) => !isTimed(variable));
  const set = (variable: Variable, value: string) => {
    const { [variable.name]: _, ...others } = draft.variables;
    change({
      variables: value === variable.default ? others : { ...others, [variable.name]: value },
    });
  };
  return (
    <section class="card">
      <h2>{t.make.load}</h2>
      {variables.length === 0 && <p class="quiet">{t.make.loadEmpty}</p>}
      <div class="field-grid">
        {variables.map((variable) => (
          <VariableField
            key={variable.name}
            variable={variable}
            value={draft.variables[variable.name] ?? variable.default}
            set={(value) => set(variable, value)}
            error={problemOf(problems, `variables.${variable.name}`)}
          />
        ))}
      </div>
    </section>
  );
}

function VariableField({
  variable,
  value,
  set,
  error,
}: {
  variable: Variable;
  value: string;
  set: (value: string) => void;
  error: string | undefined;
}) {
  const t = useWords();
  const language = useLanguage();
  const help = helpOf(variable, language);
  const isChanged = value !== variable.default;
  const bounds = boundsOf(variable, t);
  const hints = [
    help,
    help.includes(bounds) ? "" : bounds,
    t.make.defaultIs(variable.default === "" ? "–" : variable.default),
  ]
    .filter((hint) => hint !== "")
    .join(" · ");
  const name = `variables.${variable.name}`;
  const label = labelOf(variable, t);
  const reset = isChanged ? (
    <button type="button" class="link-button" onClick={() => set(variable.default)}>
      {t.words.reset}
      <span class="hidden-text">: {label}</span>
    </button>
  ) : undefined;
  const choices = variable.kind === "boolean" ? ["true", "false"] : variable.choices;
  if (choices !== null && choices.length <= BUTTONS_MAX) {
    return (
      <div class={error ? "field invalid" : "field"} data-field={name}>
        <div class="field-head">
          <Choice
            legend={label}
            value={value}
            change={set}
            options={choices.map((choice) => ({
              value: choice,
              label:
                variable.kind === "boolean"
                  ? choice === "true"
                    ? t.words.yes
                    : t.words.no
                  : choice,
            }))}
          />
          {reset}
        </div>
        {error && (
          <p class="field-error" role="alert">
            {error}
          </p>
        )}
        <p class="field-help">{hints}</p>
      </div>
    );
  }
  return (
    <Field
      label={label}
      help={hints}
      error={error}
      unit={unitOf(variable, language)}
      name={name}
      aside={reset}
    >
      {(ids) =>
        choices !== null ? (
          <select {...ids} value={value} onChange={(event) => set(event.currentTarget.value)}>
            {choices.map((choice) => (
              <option key={choice} value={choice}>
                {choice}
              </option>
            ))}
          </select>
        ) : (
          <TextInput ids={ids} value={value} change={set} numeric={variable.kind !== "text"} />
        )
      }
    </Field>
  );
}
