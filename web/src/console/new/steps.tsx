// The three steps, and the one that is shown.

import { useWords } from "../i18n";
import { Icon } from "../parts/icon";

export function Steps({
  step,
  go,
  isChosen,
}: {
  step: number;
  go: (step: number) => void;
  isChosen: boolean;
}) {
  const t = useWords();
  return (
    <ol class="steps">
      {t.make.steps.map((name, index) => {
        const number = index + 1;
        const isDone = number < step;
        return (
          <li key={number} class={number === step ? "current" : isDone ? "done" : ""}>
            <button
              type="button"
              disabled={number > 1 && !isChosen}
              onClick={() => go(number)}
              aria-label={t.make.step(number, name)}
              {...(number === step ? { "aria-current": "step" as const } : {})}
            >
              <span class="step-number">{isDone ? <Icon name="check" /> : number}</span>
              <span class="step-name">{name}</span>
            </button>
          </li>
        );
      })}
    </ol>
  );
}
