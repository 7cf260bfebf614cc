// How far a run is.

import { useEffect, useState } from "preact/hooks";

import { translated, useLanguage, useWords } from "../i18n";
import { span } from "../show";
import type { Row } from "../types";

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

// How much of the run is over, from 0 to 1, and the seconds left; null where nobody can tell.
export function shareOf(row: Row, now: number): { share: number | null; left: number | null } {
  const fraction = row.progress?.fraction ?? null;
  const began = row.started === null ? NaN : Date.parse(row.started);
  const elapsed = Math.max((now - began) / 1000, 0);
  if (fraction !== null) {
    const share = Math.min(Math.max(fraction, 0), 1);
    const left = share > 0.05 && elapsed > 0 ? (elapsed / share) * (1 - share) : null;
    return { share, left };
  }
  if (row.duration_s === null || !(row.duration_s > 0) || Number.isNaN(began)) {
    return { share: null, left: null };
  }
  return {
    share: Math.min(elapsed / row.duration_s, 1),
    left: Math.max(row.duration_s - elapsed, 0),
  };
}

export function RunProgress({ row }: { row: Row }) {
  const t = useWords();
  const language = useLanguage();
  const now = useNow();
  const { share, left } = shareOf(row, now);
  const began = row.started === null ? null : Date.parse(row.started);
  const parts = [
    row.progress
      ? t.home.phase(
          translated(t.labels.charts, row.progress.phase),
          row.progress.number,
          row.progress.of,
        )
      : null,
    began === null ? null : t.home.elapsed(span(Math.floor((now - began) / 1000), language)),
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
    </div>
  );
}
