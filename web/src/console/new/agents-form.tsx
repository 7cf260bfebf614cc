// Which machines make the load: this one, or agents.

import { useWords } from "../i18n";
import { Field, TextInput } from "../parts/field";
import { problemOf, problemWithin } from "./draft";
import type { FormPart } from "./settings-step";

export function AgentsForm({ draft, change, problems }: FormPart) {
  const t = useWords();
  const isLocal = draft.agents.trim().startsWith("local:");
  const hasBus = draft.bus !== "" || draft.busCredentials !== "";
  return (
    <section class="card">
      <h2>{t.make.agents}</h2>
      <Field
        label={t.make.agentsOf}
        help={t.make.agentsHelp}
        name="agents"
        error={problemWithin(problems, "agents")}
      >
        {(ids) => (
          <TextInput
            ids={ids}
            value={draft.agents}
            placeholder="local:2"
            change={(agents) => change({ agents })}
          />
        )}
      </Field>
      {((draft.agents.trim() !== "" && !isLocal) || hasBus) && (
        <div class="field-grid two">
          <Field
            label={t.make.bus}
            help={t.make.busHelp}
            name="bus"
            error={problemOf(problems, "bus")}
          >
            {(ids) => (
              <TextInput
                ids={ids}
                value={draft.bus}
                placeholder="nats://10.0.0.1:4222"
                change={(bus) => change({ bus })}
              />
            )}
          </Field>
          <Field
            label={t.make.busCredentials}
            help={t.make.busCredentialsHelp}
            name="bus_credentials"
            error={problemOf(problems, "bus_credentials")}
          >
            {(ids) => (
              <TextInput
                ids={ids}
                value={draft.busCredentials}
                placeholder="/etc/tacho/bus.creds"
                change={(busCredentials) => change({ busCredentials })}
              />
            )}
          </Field>
        </div>
      )}
    </section>
  );
}
