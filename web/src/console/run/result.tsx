// The record of a run: its verdict, figures, thresholds and findings.

import { useLanguage, useWords } from "../i18n";
import { Icon } from "../parts/icon";
import { Empty } from "../parts/notice";
import { TileRow } from "../parts/tiles";
import type { Tile } from "../parts/tiles";
import { Chip, toneOf } from "../parts/verdict";
import type { Tone } from "../parts/verdict";
import { query, usePlace } from "../router";
import { said } from "../said";
import { count, perSecond, runName, size, us, percent } from "../show";
import type { Run, Step, Summary, Words } from "../types";
import { Figures } from "./figures";
import { StepCharts } from "./step-charts";
import { StepTable } from "./step-table";
import type { StepRow } from "./step-table";

export function Result({ run }: { run: Run }) {
  const t = useWords();
  const language = useLanguage();
  const { summary } = run;
  if (run.state === "canceled")
    return <Empty icon="cross" title={t.states.canceled} text={t.run.canceledText} />;
  if (summary === null) {
    return (
      <>
        <Empty icon="warning" title={t.run.noResult} text={t.run.noResultHint} />
        {run.problems.map((problem) => (
          <p key={problem.message} class="notice bad">
            <Icon name="warning" />
            <span>{said(problem, language)}</span>
          </p>
        ))}
      </>
    );
  }
  const words = run.words?.[language] ?? spoken(summary);
  const last = summary.steps[summary.steps.length - 1];
  return (
    <>
      <Verdict run={run} summary={summary} words={words} />
      {last !== undefined && summary.steps.length === 1 && <Tiles step={last} />}
      <Thresholds summary={summary} />
      <Headlines summary={summary} />
      {summary.steps.length > 1 && <Steps run={run} steps={summary.steps} />}
      <Findings words={words} />
      {last !== undefined && summary.steps.length === 1 && (
        <Figures summary={summary} step={last} />
      )}
      {words.notes.length > 0 && (
        <section class="card">
          <h2>{t.run.notes}</h2>
          <ul class="prose">
            {words.notes.map((note) => (
              <li key={note}>{note}</li>
            ))}
          </ul>
        </section>
      )}
    </>
  );
}

// The steps, and the charts of the one that the address names.
function Steps({ run, steps }: { run: Run; steps: Step[] }) {
  const t = useWords();
  const { query: asked } = usePlace();
  const number = Number(asked.get("step") ?? "0");
  const shown = steps[number - 1];
  return (
    <>
      <StepTable
        name={`${runName(run)}: ${t.run.finishedSteps}`}
        rows={steps.map(rowOf)}
        charts={(index) =>
          steps[index]?.directory
            ? { isShown: index + 1 === number, show: () => query({ step: String(index + 1) }, { push: true }) }
            : null
        }
      />
      {shown?.directory && (
        <StepCharts key={number} id={run.id} number={number} label={labelOf(shown, number - 1)} />
      )}
    </>
  );
}

function labelOf(step: Step, index: number): string {
  return [step.series, step.label].filter((part) => part !== "").join(" ") || `${index + 1}`;
}

function rowOf(step: Step, index: number): StepRow {
  return {
    label: labelOf(step, index),
    verdict: step.verdict,
    attempted_tps: step.offered_in_per_s + step.offered_out_per_s,
    tps: step.tps,
    e2e_mean_us: step.latency_us.mean,
    e2e_p99_us: step.latency_us.p99,
    cpu_percent: step.cpu_percent ?? step.broker_cpu_percent,
  };
}

// The sentences of a record that has only English ones.
function spoken(summary: Summary): Words {
  return {
    reasons: summary.reasons,
    findings: summary.findings.map(({ severity, sentence, place }) => ({
      severity,
      text: place ? `${place}: ${sentence}` : sentence,
    })),
    notes: summary.notes,
  };
}

function Verdict({ run, summary, words }: { run: Run; summary: Summary; words: Words }) {
  const t = useWords();
  const language = useLanguage();
  const name = t.verdicts[summary.verdict] ?? summary.verdict.replaceAll("_", " ");
  const sentence = run.verdict_text?.[language] ?? "";
  const reasons = words.reasons.filter((reason) => reason !== sentence);
  return (
    <section class={`verdict-banner ${toneOf(summary.verdict)}`}>
      <h2>
        <VerdictIcon verdict={summary.verdict} />
        {name}
      </h2>
      {sentence !== "" && <p>{sentence}</p>}
      {reasons.length > 0 && (
        <ul>
          {reasons.map((reason) => (
            <li key={reason}>{reason}</li>
          ))}
        </ul>
      )}
    </section>
  );
}

function VerdictIcon({ verdict }: { verdict: string }) {
  const tone = toneOf(verdict);
  return (
    <Icon
      name={
        tone === "good" ? "check" : tone === "bad" ? "cross" : tone === "warn" ? "warning" : "info"
      }
    />
  );
}

function Tiles({ step }: { step: Step }) {
  const t = useWords();
  const tiles: Tile[] = [
    [perSecond(step.tps), t.run.tiles.both],
    [us(step.latency_us.p50), t.run.tiles.p50],
    [us(step.latency_us.p99), t.run.tiles.p99],
    [count(step.lost), t.run.tiles.lost, step.lost > 0],
    [
      `${percent(step.cpu_percent ?? step.broker_cpu_percent)} %`,
      step.cpu_percent !== null && step.whose_cpu
        ? t.run.tiles.cpuOf(step.whose_cpu)
        : t.run.tiles.cpu,
    ],
    [size(step.broker_rss_bytes), t.run.tiles.memory],
  ];
  return <TileRow tiles={tiles} />;
}

function Thresholds({ summary }: { summary: Summary }) {
  const t = useWords();
  if (summary.thresholds.length === 0) return null;
  return (
    <section class="card">
      <h2>{t.run.thresholds}</h2>
      <ul class="conditions">
        {summary.thresholds.map(({ condition, value, passed }) => (
          <li key={condition}>
            <Chip tone={passed ? "good" : "bad"}>{passed ? t.run.holds : t.run.fails}</Chip>
            <code>{condition}</code>
            <span class="quiet">
              {value === null ? t.run.unknown : ofCondition(condition, value)}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

// The figure of a condition in its unit.
function ofCondition(condition: string, value: number): string {
  const figure = /^[a-z0-9_]+/.exec(condition)?.[0] ?? "";
  if (/(^|_)(mean|p\d+|max)$/.test(figure)) return us(value);
  if (/cpu|memory|loss|achieved/.test(figure)) return `${percent(value)} %`;
  if (figure === "broker_rss") return size(value);
  return figure === "tps" ? `${perSecond(value)}/s` : count(value);
}

function Headlines({ summary }: { summary: Summary }) {
  const t = useWords();
  const shown = summary.headlines ?? [];
  if (shown.length === 0) return null;
  return (
    <section class="card">
      <h2>{t.run.headlines}</h2>
      <dl class="offered">
        {shown.map(({ name, label, value, unit, group }) => (
          <div key={`${name} ${group ?? ""}`}>
            <dt>{group ? `${label} (${group})` : label}</dt>
            <dd>
              {value === null
                ? "–"
                : `${Number.isInteger(value) ? count(value) : value.toFixed(2)} ${unit}`}
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

const TONES: Record<string, Tone> = { info: "calm", note: "calm", warning: "warn", error: "bad" };

function Findings({ words }: { words: Words }) {
  const t = useWords();
  return (
    <section class="card">
      <h2>{t.run.findings}</h2>
      {words.findings.length === 0 ? (
        <p class="quiet">{t.run.noFindings}</p>
      ) : (
        <ul class="machine">
          {words.findings.map(({ severity, text }) => (
            <li key={text}>
              <Chip tone={TONES[severity] ?? "calm"}>{t.levels[severity] ?? severity}</Chip>
              <p>{text}</p>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

