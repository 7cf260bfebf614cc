// How long is measured, and how often. Variables of the scenario have these times already where
// there are some.

import { useWords } from "../i18n";
import { Field, TextInput } from "../parts/field";
import type { Variable } from "../types";
import { problemOf } from "./draft";
import type { FormPart } from "./settings-step";

export function TimeForm({
  draft,
  change,
  problems,
  variables,
}: FormPart & { variables: Variable[] }) {
  const t = useWords();
  const isRun = draft.command === "run";
  const has = (name: string) => isRun && variables.some((variable) => variable.name === name);
  return (
    <section class="card">
      <h2>{t.make.time}</h2>
      <div class="field-grid">
        {!has("duration") && (
          <Field
            label={t.make.duration}
            help={t.make.durationHelp}
            unit="s"
            name="duration_s"
            error={problemOf(problems, "duration_s")}
          >
            {(ids) => (
              <TextInput
                ids={ids}
                numeric
                value={draft.duration}
                change={(duration) => change({ duration })}
              />
            )}
          </Field>
        )}
        {!has("warmup") && draft.command !== "suite" && (
          <Field
            label={t.make.warmup}
            help={t.make.warmupHelp}
            unit="s"
            name="warmup_s"
            error={problemOf(problems, "warmup_s")}
          >
            {(ids) => (
              <TextInput
                ids={ids}
                numeric
                value={draft.warmup}
                change={(warmup) => change({ warmup })}
              />
            )}
          </Field>
        )}
        {draft.command !== "capacity" && (
          <Field
            label={t.make.repeat}
            help={t.make.repeatHelp}
            name="repeat"
            error={problemOf(problems, "repeat")}
          >
            {(ids) => (
              <TextInput
                ids={ids}
                numeric
                value={draft.repeat}
                placeholder={draft.command === "compare" ? "5" : "1"}
                change={(repeat) => change({ repeat })}
              />
            )}
          </Field>
        )}
      </div>
    </section>
  );
}
