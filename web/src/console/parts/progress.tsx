// How far a run is.

import { useEffect, useState } from "preact/hooks";

import { translated, useLanguage, useWords } from "../i18n";
import { span } from "../show";
import type { Progress, Row } from "../types";
import { Chip, VerdictChip } from "./verdict";

// The time now, anew each second.
export function useNow(isActive = true): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    if (!isActive) return;
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [isActive]);
  return now;
}

// Seconds since a moment; 0 where that is unknown or ahead, as by another clock.
function since(iso: string | null, now: number): number {
  const seconds = iso === null ? NaN : (now - Date.parse(iso)) / 1000;
  return seconds > 0 ? seconds : 0;
}

// How much of the run is over, from 0 to 1, and the seconds left; null where that depends on
// results, as in a search.
export function shareOf(row: Row, now: number): { share: number | null; left: number | null } {
  const { progress } = row;
  if (progress == null || progress.step_since === "") return { share: null, left: null };
  const planned = progress.step_planned_s;
  const done = Math.min(since(progress.step_since, now), planned);
  const inStep = planned > 0 ? done / planned : 0;
  const { step } = progress;
  if (step === null) return { share: inStep, left: planned - done };
  if (step.of === null) return { share: null, left: null };
  const of = Math.max(step.of, step.number);
  return {
    share: (step.number - 1 + inStep) / of,
    left: (of - step.number) * planned + planned - done,
  };
}

export function RunProgress({ row }: { row: Row }) {
  const t = useWords();
  const language = useLanguage();
  const now = useNow();
  const { share, left } = shareOf(row, now);
  const { progress } = row;
  const phase =
    progress == null || progress.phase === ""
      ? null
      : {
          ...progress,
          name: translated(t.labels.charts, progress.phase),
          done: Math.min(since(progress.since, now), progress.planned_s ?? Infinity),
        };
  const parts = [
    progress?.step == null ? null : t.home.step(progress.step.number, progress.step.of),
    phase === null ? t.run.getsReady : t.home.phase(phase.name, phase.number, phase.of),
    phase === null
      ? null
      : t.run.seconds(
          phase.done.toFixed(0),
          phase.planned_s === null ? null : String(Math.round(phase.planned_s)),
        ),
    row.started === null
      ? null
      : t.home.elapsed(span(Math.floor(since(row.started, now)), language)),
    left === null ? null : t.home.remaining(span(Math.ceil(left), language)),
  ];
  return (
    <div class="run-progress">
      <progress
        max={1}
        {...(share === null ? {} : { value: share })}
        aria-label={t.home.progress}
      />
      <p>
        {parts
          .filter((part) => part !== null)
          .map((part) => (
            <span key={part}>{part}</span>
          ))}
      </p>
      {progress != null && <SoFar progress={progress} />}
    </div>
  );
}

// The verdict so far: of the steps that have ended, and what speaks against the run right now.
function SoFar({ progress }: { progress: Progress }) {
  const t = useWords();
  const { verdicts, failures, missed } = progress;
  const ended = Object.entries(verdicts).sort(([, a], [, b]) => b - a);
  const isFine = failures === 0 && missed === 0 && ended.every(([verdict]) => verdict === "ok");
  return (
    <div class="so-far">
      <span>{t.run.sofar}</span>
      {ended.map(([verdict, steps]) => (
        <span key={verdict} class="so-far-steps">
          <VerdictChip verdict={verdict} />
          {t.home.steps(steps)}
        </span>
      ))}
      {missed > 0 && <Chip tone="bad">{t.run.soFarBad(missed)}</Chip>}
      {failures > 0 && <Chip tone="warn">{t.run.soFarFailures(failures)}</Chip>}
      {isFine && ended.length === 0 && <Chip tone="good">{t.run.soFarOk}</Chip>}
    </div>
  );
}
