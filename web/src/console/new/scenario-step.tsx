// The first step: which kind of test, of which scenario.

import { useState } from "preact/hooks";

import { useLanguage, useWords } from "../i18n";
import { Choice } from "../parts/choice";
import { Field, TextInput } from "../parts/field";
import { usePlace } from "../router";
import { grouped, summaryOf } from "../scenarios";
import type { Catalogue, Problem, Suite } from "../types";
import type { Draft } from "./draft";
import { COMMANDS, problemOf } from "./draft";
import { Files } from "./files";
import { Card, ScenarioCard } from "./scenario-card";

export function ScenarioStep({
  catalogue,
  draft,
  change,
  problems,
  chosen,
}: {
  catalogue: Catalogue;
  draft: Draft;
  change: (part: Partial<Draft>) => void;
  problems: Problem[];
  // Follows a choice that needs nothing else here.
  chosen: (() => void) | undefined;
}) {
  const t = useWords();
  const language = useLanguage();
  const { query } = usePlace();
  const known = catalogue.scenarios.some(({ name }) => name === draft.scenario);
  const [byName, setByName] = useState(known ? "" : draft.scenario);
  const pick = (scenario: string) => {
    setByName("");
    // Values of another scenario mean nothing here.
    change({
      scenario,
      upload: "",
      data: [],
      variables: scenario === draft.scenario ? draft.variables : {},
      virtualUsers: {},
    });
  };
  const suites = catalogue.suites.map((suite): Suite =>
    typeof suite === "string" ? { name: suite } : suite,
  );
  return (
    <>
      <section class="card">
        <Choice
          legend={t.make.command}
          value={draft.command}
          options={COMMANDS.map((value) => ({ value, label: t.make.commands[value] }))}
          change={(command) => {
            const isOther = (command === "suite") !== (draft.command === "suite");
            change({ command, ...(isOther ? { scenario: "", upload: "", variables: {} } : {}) });
          }}
        />
        <p class="field-help">{t.make.commandHelp[draft.command]}</p>
      </section>
      {draft.command === "suite" ? (
        <section class="card" data-field="scenario">
          <h2>{t.make.suitePick}</h2>
          <div class="scenario-grid">
            {suites.map((suite) => (
              <Card
                key={suite.name}
                title={suite.name}
                summary={summaryOf(suite, language)}
                name=""
                isChosen={draft.scenario === suite.name}
                pick={() => pick(suite.name)}
                open={chosen}
              />
            ))}
          </div>
        </section>
      ) : (
        <>
          <section class="card" data-field="scenario">
            <h2>{t.make.pick}</h2>
            {grouped(catalogue.scenarios).map(([group, scenarios]) => (
              <div key={group} class="scenario-group">
                <h3>{t.groups[group] ?? group}</h3>
                <div class="scenario-grid">
                  {scenarios.map((scenario) => (
                    <ScenarioCard
                      key={scenario.name}
                      scenario={scenario}
                      isChosen={draft.upload === "" && draft.scenario === scenario.name}
                      pick={() => pick(scenario.name)}
                      open={chosen}
                    />
                  ))}
                </div>
              </div>
            ))}
          </section>
          <section class="card">
            <h2>{t.make.byName}</h2>
            <Field
              label={t.make.testName}
              help={t.make.byNameHelp}
              name="scenario"
              error={byName === "" ? undefined : problemOf(problems, "scenario")}
            >
              {(ids) => (
                <>
                  <TextInput
                    ids={ids}
                    value={byName}
                    list="published-names"
                    change={(value) => {
                      setByName(value);
                      change({ scenario: value.trim(), upload: "", variables: {} });
                    }}
                  />
                  <datalist id="published-names">
                    {catalogue.published.map((name) => (
                      <option key={name} value={name} />
                    ))}
                  </datalist>
                </>
              )}
            </Field>
          </section>
          <Files
            draft={draft}
            change={change}
            problems={problems}
            isFirst={query.get("files") === "1"}
          />
        </>
      )}
    </>
  );
}
