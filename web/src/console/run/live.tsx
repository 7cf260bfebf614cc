// A run while it runs: progress, tiles, thresholds, charts, actions, failures.

import { useEffect, useRef, useState } from "preact/hooks";

import { endpoint } from "../api";
import { Course, follow } from "../../course";
import { thousands } from "../../format";
import { useWords } from "../i18n";
import { useStore } from "../store";
import { Icon } from "../parts/icon";
import { settings } from "../settings";
import type { Run } from "../types";
import { Charts } from "./charts";
import { LiveFacts } from "./live-facts";
import { LiveLog } from "./live-log";
import { LiveThresholds } from "./live-thresholds";

type Trouble = "gone" | "reconnecting" | "displaced" | null;

export function Live({ run, isShown, ended }: { run: Run; isShown: boolean; ended: () => void }) {
  const t = useWords();
  const { language } = useStore(settings);
  const course = useRef<Course>(new Course());
  const [trouble, setTrouble] = useState<Trouble>(null);
  // Counts what has been drawn: each event asks for one more drawing at the next frame.
  const [, setTurn] = useState(0);
  const pending = useRef(0);
  // Counts events: charts are drawn only when there were some.
  const news = useRef(0);
  const isOver = course.current.end !== null;
  const state = useRef(run.state);
  state.current = run.state;
  // It had ended before it was watched.
  const isPast = useRef(false);

  useEffect(() => {
    const draw = () => {
      if (pending.current !== 0) return;
      pending.current = requestAnimationFrame(() => {
        pending.current = 0;
        setTurn((turn) => turn + 1);
      });
    };
    const stop = follow(endpoint(["runs", run.id, "events"]), {
      began: (begun) => {
        course.current = begun;
        isPast.current = begun.end !== null;
        news.current += 1;
        setTrouble(null);
        draw();
      },
      changed: (kind) => {
        news.current += 1;
        draw();
        if (kind === "end" && state.current === "running") ended();
      },
      ready: draw,
      displaced: () => setTrouble("displaced"),
      lost: (forGood) => setTrouble(forGood ? "gone" : "reconnecting"),
    });
    // The progress of a phase moves between events, too.
    const timer = setInterval(() => {
      if (course.current.end === null) draw();
    }, 500);
    return () => {
      stop();
      clearInterval(timer);
      cancelAnimationFrame(pending.current);
      pending.current = 0;
    };
  }, [run.id]);

  const { hello, missed } = course.current;
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
      {isPast.current ? (
        <p class="quiet hint">
          {everySeconds > 1 ? `${t.run.thinned(everySeconds)} ` : ""}
          {t.run.windowHint}
        </p>
      ) : (
        <LiveFacts course={course.current} />
      )}
      <LiveThresholds course={course.current} />
      <Charts course={course.current} news={news.current} isShown={isShown} key={language} />
      <LiveLog course={course.current} isRun={run.kind === "run"} />
    </>
  );
}
