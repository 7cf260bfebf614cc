// The conditions of a run, second by second, and the verdict so far.

import type { Course } from "../../course";
import { show } from "../../format";
import { holds, unitOf } from "../../thresholds";
import type { ThresholdState } from "../../thresholds";
import { useWords } from "../i18n";
import type { Dictionary } from "../i18n";
import { Chip } from "../parts/verdict";
import type { Tone } from "../parts/verdict";

export function LiveThresholds({ course }: { course: Course }) {
  const t = useWords();
  const states = course.thresholds.all();
  const isOver = course.end !== null;
  const bad = states.filter(
    ({ threshold, latest }) => latest !== null && !holds(threshold, latest),
  ).length;
  const soFar = [
    ...(course.failures > 0 ? [t.run.soFarFailures(course.failures)] : []),
    ...(bad > 0 ? [t.run.soFarBad(bad)] : []),
  ];
  if (isOver && states.length === 0) return null;
  return (
    <section class="card" aria-labelledby="live-sofar">
      {!isOver && (
        <p class="so-far">
          <b id="live-sofar">{t.run.sofar}</b>
          <Chip tone={soFar.length > 0 ? "warn" : "good"}>
            {soFar.length > 0 ? soFar.join(", ") : t.run.soFarOk}
          </Chip>
        </p>
      )}
      {states.length > 0 && (
        <>
          <ul class="conditions">
            {states.map((state) => (
              <Condition key={state.threshold.condition} state={state} t={t} />
            ))}
          </ul>
          <p class="field-help">{t.run.recordJudges}</p>
        </>
      )}
    </section>
  );
}

function Condition({ state, t }: { state: ThresholdState; t: Dictionary }) {
  const { threshold, seconds, missed, worst, latest } = state;
  const unit = unitOf(threshold.figure);
  const tone: Tone =
    seconds === 0
      ? "calm"
      : missed === 0
        ? "good"
        : latest !== null && holds(threshold, latest)
          ? "warn"
          : "bad";
  const word =
    seconds === 0 ? t.run.unknown : missed === 0 ? t.run.holds : t.run.missedIn(missed, seconds);
  return (
    <li>
      <Chip tone={tone}>{word}</Chip>
      <code>{threshold.condition}</code>
      {latest !== null && worst !== null && (
        <span class="quiet">{t.run.nowAndWorst(show(latest, unit), show(worst, unit))}</span>
      )}
    </li>
  );
}
