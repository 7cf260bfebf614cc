// Virtual users of an uploaded file: how many of each group, how fast they come, on how many load
// machines, and how often those of a plan run through their groups.

import { useState } from "preact/hooks";

import { thousands } from "../../format";
import { useWords } from "../i18n";
import { Choice } from "../parts/choice";
import { Field, TextInput } from "../parts/field";
import { problemOf } from "./draft";
import type { FormPart } from "./settings-step";
import type { UploadedFile } from "./uploads";

export function ClientsForm({ file, ...part }: FormPart & { file: UploadedFile }) {
  const t = useWords();
  const { draft, change, problems } = part;
  const groups = file.groups ?? [];
  const isPlan = file.kind === "plan";
  return (
    <section class="card">
      <h2>{t.make.clients}</h2>
      <div class="field-grid">
        {groups.map(({ name, virtual_users: users }) => (
          <Field
            key={name}
            label={t.make.clientsOf(name)}
            name={`virtual_users.${name}`}
            help={t.make.defaultIs(thousands(users))}
            error={problemOf(problems, `virtual_users.${name}`)}
          >
            {(ids) => (
              <TextInput
                ids={ids}
                numeric
                value={draft.virtualUsers[name] ?? ""}
                placeholder={String(users)}
                change={(value) => {
                  const { [name]: _, ...others } = draft.virtualUsers;
                  change({ virtualUsers: value === "" ? others : { ...others, [name]: value } });
                }}
              />
            )}
          </Field>
        ))}
        <Field
          label={t.make.rampUp}
          help={t.make.rampUpHelp}
          unit="s"
          name="ramp_up_s"
          error={problemOf(problems, "ramp_up_s")}
        >
          {(ids) => (
            <TextInput
              ids={ids}
              numeric
              value={draft.rampUp}
              change={(rampUp) => change({ rampUp })}
            />
          )}
        </Field>
        <Field
          label={t.make.machines}
          help={t.make.machinesHelp}
          name="machines"
          error={problemOf(problems, "machines")}
        >
          {(ids) => (
            <TextInput
              ids={ids}
              numeric
              value={draft.machines}
              placeholder="1"
              change={(machines) => change({ machines })}
            />
          )}
        </Field>
      </div>
      {isPlan && <Loops {...part} />}
      {isPlan && (file.files ?? []).length > 0 && <Rows {...part} />}
    </section>
  );
}

type LoopMode = "plan" | "forever" | "times";

function Loops({ draft, change, problems }: FormPart) {
  const t = useWords();
  const [isCounted, setCounted] = useState(draft.loops !== "" && draft.loops !== "forever");
  const mode: LoopMode = isCounted ? "times" : draft.loops === "forever" ? "forever" : "plan";
  const error = problemOf(problems, "loops");
  return (
    <div class={error ? "field invalid" : "field"} data-field="loops">
      <Choice
        legend={t.make.loops}
        value={mode}
        options={(["plan", "forever", "times"] as const).map((value) => ({
          value,
          label: t.make.loopModes[value],
        }))}
        change={(chosen) => {
          setCounted(chosen === "times");
          change({ loops: chosen === "forever" ? "forever" : chosen === "times" ? "1" : "" });
        }}
      />
      {mode === "times" && (
        <Field label={t.make.loopCount} error={error}>
          {(ids) => (
            <TextInput ids={ids} numeric value={draft.loops} change={(loops) => change({ loops })} />
          )}
        </Field>
      )}
      {mode !== "times" && error && (
        <p class="field-error" role="alert">
          {error}
        </p>
      )}
      <p class="field-help">{t.make.loopsHelp}</p>
    </div>
  );
}

function Rows({ draft, change, problems }: FormPart) {
  const t = useWords();
  const error = problemOf(problems, "rows");
  const chosen = draft.rows === "split" || draft.rows === "copy" ? draft.rows : "plan";
  return (
    <div class={error ? "field invalid" : "field"} data-field="rows">
      <Choice
        legend={t.make.rows}
        value={chosen}
        options={(["plan", "split", "copy"] as const).map((value) => ({
          value,
          label: t.make.rowModes[value],
        }))}
        change={(rows) => change({ rows: rows === "plan" ? "" : rows })}
      />
      {error && (
        <p class="field-error" role="alert">
          {error}
        </p>
      )}
      <p class="field-help">{t.make.rowsHelp}</p>
    </div>
  );
}
