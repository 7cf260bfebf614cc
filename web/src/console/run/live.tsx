// A run while it runs: progress, tiles, thresholds, charts, actions, failures.

import { useRef } from "preact/hooks";

import { endpoint } from "../api";
import { thousands } from "../../format";
import { useWords } from "../i18n";
import { useStore } from "../store";
import { Icon } from "../parts/icon";
import { settings } from "../settings";
import type { Run } from "../types";
import { Charts } from "./charts";
import { LiveAgents } from "./live-agents";
import { LiveFacts } from "./live-facts";
import { LiveLog } from "./live-log";
import { LiveThresholds } from "./live-thresholds";
import { useCourse } from "./use-course";

export function Live({ run, isShown, ended }: { run: Run; isShown: boolean; ended: () => void }) {
  const t = useWords();
  const { language } = useStore(settings);
  const state = useRef(run.state);
  state.current = run.state;
  const { course, news, trouble, isPast } = useCourse(endpoint(["runs", run.id, "events"]), () => {
    if (state.current === "running") ended();
  });
  const isOver = course.end !== null;
  const { hello, missed } = course;
  const forgotten = hello?.forgotten ?? 0;
  const everySeconds = hello?.every_s ?? 1;
  return (
    <>
      {trouble !== null && !isOver && (
        <p class="notice warn" role="status">
          <Icon name="warning" />
          <span>{t.run[trouble]}</span>
        </p>
      )}
      {missed > 0 && (
        <p class="notice warn">
          <Icon name="info" />
          <span>{t.run.missed(thousands(missed))}</span>
        </p>
      )}
      {forgotten > 0 && (
        <p class="notice">
          <Icon name="info" />
          <span>{t.run.forgotten(thousands(forgotten))}</span>
        </p>
      )}
      {isPast ? (
        <p class="quiet hint">
          {everySeconds > 1 ? `${t.run.thinned(everySeconds)} ` : ""}
          {t.run.windowHint}
        </p>
      ) : (
        <LiveFacts course={course} />
      )}
      <LiveThresholds course={course} />
      <LiveAgents course={course} />
      <Charts course={course} news={news} isShown={isShown} key={language} />
      <LiveLog course={course} isRun={run.kind === "run"} />
    </>
  );
}
