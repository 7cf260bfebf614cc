// The charts of a step of a ladder, a search, a suite or repeats that has ended.

import { useEffect, useRef } from "preact/hooks";

import { endpoint } from "../api";
import { useLanguage, useWords } from "../i18n";
import { Icon } from "../parts/icon";
import { query } from "../router";
import { Charts } from "./charts";
import { LiveLog } from "./live-log";
import { LiveThresholds } from "./live-thresholds";
import { useCourse } from "./use-course";

export function StepCharts({ id, number, label }: { id: string; number: number; label: string }) {
  const t = useWords();
  const language = useLanguage();
  const address = endpoint(["runs", id, "steps", String(number), "events"]);
  const { course, news, trouble } = useCourse(address, () => {});
  const section = useRef<HTMLElement>(null);
  useEffect(() => section.current?.scrollIntoView({ block: "start" }), []);
  const hasNone = course.end === null ? trouble !== null : course.run === null;
  const everySeconds = course.hello?.every_s ?? 1;
  return (
    <section class="step-charts" ref={section} aria-label={t.run.chartsOf(label)}>
      <div class="section-head">
        <h2>{t.run.chartsOf(label)}</h2>
        <button type="button" class="button small" onClick={() => query({ step: null }, { push: true })}>
          <Icon name="cross" />
          {t.words.close}
        </button>
      </div>
      {hasNone && (
        <p class="notice warn" role="status">
          <Icon name="warning" />
          <span>{t.run.noCourse}</span>
        </p>
      )}
      <p class="quiet hint">
        {everySeconds > 1 ? `${t.run.thinned(everySeconds)} ` : ""}
        {t.run.windowHint}
      </p>
      <LiveThresholds course={course} />
      <Charts course={course} news={news} isShown key={language} />
      <LiveLog course={course} isRun />
    </section>
  );
}
