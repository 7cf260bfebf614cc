// A scenario to choose.

import { useLanguage } from "../i18n";
import { STANDARD, summaryOf, titleOf } from "../scenarios";
import { Topology } from "../topology";
import type { Scenario } from "../types";

export function Card({
  title,
  name,
  summary,
  isChosen,
  pick,
  open,
  picture,
}: {
  title: string;
  name: string;
  summary: string;
  isChosen: boolean;
  pick: () => void;
  // Goes on with it at once: a double click.
  open: (() => void) | undefined;
  picture?: preact.ComponentChildren;
}) {
  return (
    <label
      class={isChosen ? "scenario chosen" : "scenario"}
      {...(open ? { onDblClick: open } : {})}
    >
      <input type="radio" name="scenario" checked={isChosen} onChange={pick} />
      {picture}
      <span class="scenario-text">
        <b>{title}</b>
        {name !== "" && <code>{name}</code>}
        <span>{summary}</span>
      </span>
    </label>
  );
}

export function ScenarioCard({
  scenario,
  isChosen,
  pick,
  open,
}: {
  scenario: Scenario;
  isChosen: boolean;
  pick: () => void;
  open: (() => void) | undefined;
}) {
  const language = useLanguage();
  return (
    <Card
      title={titleOf(scenario, language)}
      name={scenario.name}
      summary={summaryOf(scenario, language)}
      isChosen={isChosen}
      pick={pick}
      open={open}
      picture={STANDARD.includes(scenario.name) ? <Topology scenario={scenario.name} /> : undefined}
    />
  );
}
