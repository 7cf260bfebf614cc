// The second step: everything that a test can be given.

import { useWords } from "../i18n";
import { Icon } from "../parts/icon";
import { Field, ListField, TextInput } from "../parts/field";
import type { Problem, Variable } from "../types";
import { AgentsForm } from "./agents-form";
import { ClientsForm } from "./clients-form";
import type { Draft } from "./draft";
import { problemOf } from "./draft";
import { TargetForm } from "./target-form";
import { TimeForm } from "./time-form";
import type { UploadedFile } from "./uploads";
import { VariablesForm } from "./variables-form";

export interface FormPart {
  draft: Draft;
  change: (part: Partial<Draft>) => void;
  problems: Problem[];
}

export function SettingsStep({
  draft,
  change,
  variables,
  problems,
  uploaded,
  isChosen,
}: FormPart & { variables: Variable[]; uploaded: UploadedFile | undefined; isChosen: boolean }) {
  const t = useWords();
  const part: FormPart = { draft, change, problems };
  // What belongs to no field of the form stands above it.
  const general = problems.filter(({ field }) => field === null);
  return (
    <>
      {general.map(({ message }) => (
        <p key={message} class="notice bad" role="alert">
          <Icon name="warning" />
          <span>{message}</span>
        </p>
      ))}
      {draft.command === "ladder" && (
        <section class="card">
          <h2>{t.make.commands.ladder}</h2>
          <Field
            label={t.make.ladderSteps}
            help={t.make.ladderStepsHelp}
            name="steps"
            error={problemOf(problems, "steps")}
          >
            {(ids) => (
              <TextInput
                ids={ids}
                value={draft.steps}
                placeholder="target_throughput=5k..30k:5k"
                change={(steps) => change({ steps })}
              />
            )}
          </Field>
          <List
            {...part}
            name="stopWhen"
            field="stop_when"
            label={t.make.stopWhen}
            help={t.make.stopWhenHelp}
            example={t.make.stopWhenExample}
          />
        </section>
      )}
      {draft.command === "capacity" && (
        <section class="card">
          <h2>{t.make.commands.capacity}</h2>
          <Field
            label={t.make.searched}
            help={t.make.searchedHelp}
            name="variable"
            error={problemOf(problems, "variable")}
          >
            {(ids) => (
              <TextInput
                ids={ids}
                value={draft.variable}
                placeholder="target_throughput"
                list="searched-names"
                change={(variable) => change({ variable })}
              />
            )}
          </Field>
          <datalist id="searched-names">
            {variables.map(({ name }) => (
              <option key={name} value={name} />
            ))}
          </datalist>
          <List
            {...part}
            name="objectives"
            label={t.make.objectives}
            help={t.make.objectivesHelp}
            example={t.make.objectiveExample}
          />
        </section>
      )}
      {draft.command === "suite" && (
        <section class="card">
          <h2>{t.make.commands.suite}</h2>
          <List
            {...part}
            name="only"
            label={t.make.only}
            help={t.make.onlyHelp}
            example={t.make.onlyExample}
          />
        </section>
      )}
      {draft.command !== "suite" && isChosen && <VariablesForm {...part} variables={variables} />}
      <TargetForm {...part} />
      <AgentsForm {...part} />
      {uploaded !== undefined && <ClientsForm {...part} file={uploaded} key={uploaded.upload} />}
      <TimeForm {...part} variables={variables} />
      <section class="card">
        <h2>{t.make.judge}</h2>
        <List
          {...part}
          name="thresholds"
          label={t.make.thresholds}
          help={draft.command === "run" ? t.make.thresholdsHelp : t.make.thresholdsOfEach}
          example={t.make.thresholdExample}
        />
      </section>
      <section class="card">
        <h2>{t.make.observe}</h2>
        <div class="field-grid two">
          <List
            {...part}
            name="monitors"
            label={t.make.monitors}
            help={t.make.monitorsHelp}
            example={t.make.monitorExample}
          />
          <List
            {...part}
            name="outputs"
            label={t.make.outputs}
            help={t.make.outputsHelp}
            example={t.make.outputExample}
          />
        </div>
      </section>
      <section class="card">
        <h2>{t.make.about}</h2>
        <div class="field-grid two">
          <Field
            label={t.make.testName}
            help={t.make.testNameHelp}
            name="name"
            error={problemOf(problems, "name")}
          >
            {(ids) => (
              <TextInput ids={ids} value={draft.name} change={(name) => change({ name })} />
            )}
          </Field>
          <Field
            label={t.make.tags}
            help={t.records.tagsHelp}
            name="tags"
            error={problemOf(problems, "tags")}
          >
            {(ids) => (
              <TextInput
                ids={ids}
                value={draft.tags}
                placeholder={t.make.tagExample}
                change={(tags) => change({ tags })}
              />
            )}
          </Field>
        </div>
        <Field label={t.make.note} name="note" error={problemOf(problems, "note")}>
          {(ids) => (
            <textarea
              {...ids}
              rows={3}
              value={draft.note}
              onInput={(event) => change({ note: event.currentTarget.value })}
            />
          )}
        </Field>
      </section>
    </>
  );
}

function List({
  draft,
  change,
  problems,
  name,
  field = name,
  label,
  help,
  example,
}: FormPart & {
  name: "thresholds" | "monitors" | "outputs" | "objectives" | "stopWhen" | "only";
  // What the API calls it.
  field?: string;
  label: string;
  help: string;
  example: string;
}) {
  return (
    <ListField
      label={label}
      help={help}
      example={example}
      name={field}
      values={draft[name]}
      change={(values) => change({ [name]: values })}
      errors={(index) => problemOf(problems, `${field}[${index}]`)}
      problem={problemOf(problems, field)}
    />
  );
}
