// Where tests start: the standard scenarios, and everything else.

import { useLanguage, useWords } from "../i18n";
import { Icon } from "../parts/icon";
import { address } from "../router";
import { Topology } from "../topology";
import type { Scenario } from "../types";
import { STANDARD, titleOf } from "../scenarios";

export function StartCard({ scenarios }: { scenarios: Scenario[] }) {
  const t = useWords();
  const language = useLanguage();
  const shown = STANDARD.flatMap(
    (name) => scenarios.find((scenario) => scenario.name === name) ?? [],
  );
  return (
    <>
      <ul class="start-grid">
        {shown.map((scenario) => (
          <li key={scenario.name}>
            <a href={address("/new", { scenario: scenario.name, step: "2" })}>
              <Topology scenario={scenario.name} />
              <span>{titleOf(scenario, language)}</span>
            </a>
          </li>
        ))}
      </ul>
      <ul class="start-more">
        <li>
          <a href="/new">
            <Icon name="right" />
            {t.home.moreScenarios}
          </a>
        </li>
        <li>
          <a href="/new?command=ladder">
            <Icon name="right" />
            {t.make.commands.ladder}
          </a>
        </li>
        <li>
          <a href="/new?command=capacity">
            <Icon name="right" />
            {t.make.commands.capacity}
          </a>
        </li>
        <li>
          <a href="/new?command=compare">
            <Icon name="right" />
            {t.make.commands.compare}
          </a>
        </li>
        <li>
          <a href="/new?command=suite">
            <Icon name="right" />
            {t.make.commands.suite}
          </a>
        </li>
        <li>
          <a href="/new?files=1">
            <Icon name="upload" />
            {t.home.upload}
          </a>
        </li>
      </ul>
    </>
  );
}
