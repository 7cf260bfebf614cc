// Virtual users of a plan: how many of each group, and how fast they come.

import { thousands } from "../../format";
import { useWords } from "../i18n";
import { Field, TextInput } from "../parts/field";
import type { Upload } from "../types";
import { problemOf } from "./draft";
import type { FormPart } from "./settings-step";

export function ClientsForm({
  draft,
  change,
  problems,
  groups,
}: FormPart & { groups: Upload["groups"] }) {
  const t = useWords();
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
      </div>
    </section>
  );
}
