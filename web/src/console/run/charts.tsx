// The live charts, which draw themselves; this places them on the page.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import type { Course, Source } from "../../course";
import { Board } from "../../figures";
import { TimeWindow } from "../../window";
import type { Range } from "../../window";
import { translated, useWords } from "../i18n";
import type { Dictionary } from "../i18n";
import { Icon } from "../parts/icon";
import { useLanguage } from "../i18n";
import { span } from "../show";

function headingOf({ of, name }: Source, t: Dictionary): string {
  switch (of) {
    case "run":
      return "";
    case "groups":
      return translated(t.labels.charts, "Groups");
    case "broker":
      return `${t.columns.target} ${name}`;
    case "host":
      return `${t.run.host} ${name}`;
  }
}

export function Charts({
  course,
  news,
  isShown,
}: {
  course: Course;
  // Another number: something has happened.
  news: number;
  isShown: boolean;
}) {
  const t = useWords();
  const language = useLanguage();
  const place = useRef<HTMLDivElement>(null);
  const boards = useRef<{ course: Course | null; boards: Board[] }>({ course: null, boards: [] });
  const [window] = useState(() => new TimeWindow());
  const [range, setRange] = useState<Range>(null);
  useEffect(() => window.subscribe(setRange), [window]);

  useLayoutEffect(() => {
    const host = place.current;
    if (host === null || !isShown) return;
    const drawn = boards.current;
    if (drawn.course !== course) {
      for (const board of drawn.boards) board.destroy();
      host.replaceChildren();
      drawn.course = course;
      drawn.boards = [];
    }
    const text = (words: string) => translated(t.labels.charts, words);
    const look = { text, window, table: { summary: t.run.chartTable, second: t.run.second, text } };
    for (const source of course.sources.slice(drawn.boards.length)) {
      drawn.boards.push(new Board(host, headingOf(source, t), source, course, look));
    }
    for (const board of drawn.boards) board.draw();
  }, [course, news, isShown]);

  useEffect(() => {
    const all = () => boards.current.boards;
    const host = place.current;
    if (host === null) return;
    let width = host.clientWidth;
    const resized = new ResizeObserver(() => {
      if (host.clientWidth === width || host.clientWidth === 0) return;
      width = host.clientWidth;
      for (const board of all()) board.resize();
    });
    resized.observe(host);
    const recolour = () => {
      for (const board of all()) board.recolour();
    };
    addEventListener("tacho-colours", recolour);
    return () => {
      resized.disconnect();
      removeEventListener("tacho-colours", recolour);
      for (const board of all()) board.destroy();
      boards.current = { course: null, boards: [] };
    };
  }, []);

  return (
    <>
      {range !== null && (
        <p class="window-bar" role="status">
          <span>{t.run.window(span(range[0], language), span(range[1], language))}</span>
          <button type="button" class="button small" onClick={() => window.select(null)}>
            <Icon name="cross" />
            {t.run.wholeTime}
          </button>
        </p>
      )}
      <div class="live-charts" ref={place} />
    </>
  );
}
