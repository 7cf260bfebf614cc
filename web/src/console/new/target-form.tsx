// The broker under test, and how clients are let in.

import { useWords } from "../i18n";
import { Field, ListField, TextInput } from "../parts/field";
import { useState } from "preact/hooks";
import { problemOf, problemWithin } from "./draft";
import type { FormPart } from "./settings-step";

export function TargetForm({ draft, change, problems }: FormPart) {
  const t = useWords();
  const [isOther, setOther] = useState(draft.broker !== "");
  const isCompared = draft.command === "compare";
  const reachesOther = isCompared || isOther;
  return (
    <section class="card">
      <h2>{isCompared ? t.make.brokers : t.make.target}</h2>
      {isCompared ? (
        <ListField
          label={t.make.brokers}
          help={t.make.brokersHelp}
          example="mqtt://10.0.0.1:1883"
          name="broker"
          values={draft.brokers}
          change={(brokers) => change({ brokers })}
          errors={(index) => problemOf(problems, `broker[${index}]`)}
          problem={problemOf(problems, "broker")}
        />
      ) : (
        <>
          <div class="target-choice" role="radiogroup" aria-label={t.make.target}>
            <label class={isOther ? "scenario" : "scenario chosen"}>
              <input
                type="radio"
                name="target"
                checked={!isOther}
                onChange={() => {
                  setOther(false);
                  change({ broker: "" });
                }}
              />
              <span class="scenario-text">
                <b>{t.make.own}</b>
                <span>{t.make.ownHelp}</span>
              </span>
            </label>
            <label class={isOther ? "scenario chosen" : "scenario"}>
              <input type="radio" name="target" checked={isOther} onChange={() => setOther(true)} />
              <span class="scenario-text">
                <b>{t.make.other}</b>
                <span>{t.make.otherHelp}</span>
              </span>
            </label>
          </div>
          {isOther && (
            <Field
              label={t.make.url}
              help={t.make.urlHelp}
              name="broker"
              error={problemWithin(problems, "broker")}
            >
              {(ids) => (
                <TextInput
                  ids={ids}
                  value={draft.broker}
                  placeholder="mqtt://10.0.0.1:1883"
                  change={(broker) => change({ broker })}
                />
              )}
            </Field>
          )}
        </>
      )}
      {reachesOther && <Access draft={draft} change={change} problems={problems} />}
    </section>
  );
}

function Access({ draft, change, problems }: FormPart) {
  const t = useWords();
  const hasLogin = draft.user !== "" || draft.passwordFile !== "";
  const hasTls = draft.ca !== "" || draft.cert !== "" || draft.key !== "";
  return (
    <>
      <details class="fold" open={hasLogin}>
        <summary>{t.make.login}</summary>
        <div class="field-grid two">
          <Field
            label={t.make.user}
            name="credentials.username"
            error={problemOf(problems, "credentials.username")}
          >
            {(ids) => (
              <TextInput ids={ids} value={draft.user} change={(user) => change({ user })} />
            )}
          </Field>
          <Field
            label={t.make.passwordFile}
            help={t.make.passwordFileHelp}
            name="credentials.password_file"
            error={problemOf(problems, "credentials.password_file")}
          >
            {(ids) => (
              <TextInput
                ids={ids}
                value={draft.passwordFile}
                placeholder="/etc/tacho/password"
                change={(passwordFile) => change({ passwordFile })}
              />
            )}
          </Field>
        </div>
      </details>
      <details class="fold" open={hasTls}>
        <summary>{t.make.tls}</summary>
        <p class="field-help">{t.make.tlsHelp}</p>
        <div class="field-grid two">
          {(
            [
              ["ca", t.make.ca, "ca_file"],
              ["cert", t.make.cert, "cert_file"],
              ["key", t.make.key, "key_file"],
            ] as const
          ).map(([name, label, field]) => (
            <Field
              key={name}
              label={label}
              name={`tls.${field}`}
              error={problemOf(problems, `tls.${field}`)}
            >
              {(ids) => (
                <TextInput
                  ids={ids}
                  value={draft[name]}
                  placeholder={`/etc/tacho/${name}.pem`}
                  change={(value) => change({ [name]: value })}
                />
              )}
            </Field>
          ))}
        </div>
      </details>
    </>
  );
}
