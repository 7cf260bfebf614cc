// The verdict or the state of a run in a word and a shape.

import { useLanguage, useWords } from "../i18n";
import type { Row } from "../types";
import { Icon } from "./icon";
import type { IconName } from "./icon";

export type Tone = "good" | "bad" | "warn" | "calm" | "busy";

// Verdicts that say nothing about the broker warn; those that say something bad are bad.
export function toneOf(verdict: string): Tone {
  switch (verdict) {
    case "ok":
    case "better":
      return "good";
    case "generator_bound":
    case "disturbed":
    case "network_bound":
    case "not_steady":
    case "mixed":
    case "unclear":
      return "warn";
    case "no_change":
    case "aborted":
      return "calm";
    default:
      return "bad";
  }
}

const SHAPES: Record<Tone, IconName> = {
  good: "check",
  bad: "cross",
  warn: "warning",
  calm: "info",
  busy: "play",
};

export function Chip({ tone, children, title }: { tone: Tone; children: string; title?: string }) {
  return (
    <span class={`chip ${tone}`} {...(title ? { title } : {})}>
      <Icon name={SHAPES[tone]} />
      {children}
    </span>
  );
}

export function VerdictChip({ verdict }: { verdict: string }) {
  const t = useWords();
  return <Chip tone={toneOf(verdict)}>{t.verdicts[verdict] ?? verdict.replaceAll("_", " ")}</Chip>;
}

export function RunChip({ row }: { row: Row }) {
  const t = useWords();
  const language = useLanguage();
  if (row.state === "finished" && row.verdict !== null) {
    const title = row.verdict_text?.[language];
    return (
      <Chip tone={toneOf(row.verdict)} {...(title ? { title } : {})}>
        {t.verdicts[row.verdict] ?? row.verdict.replaceAll("_", " ")}
      </Chip>
    );
  }
  const tone: Tone = row.state === "running" ? "busy" : row.state === "broken" ? "bad" : "calm";
  return <Chip tone={tone}>{t.states[row.state]}</Chip>;
}
