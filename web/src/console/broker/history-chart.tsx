// Figures of the broker over the last hour or day.

import { useEffect, useRef, useState } from "preact/hooks";

import type { Unit } from "../../data";
import { show, tick } from "../../format";
import { fromZero, linearTicks } from "../../scale";
import { useLanguage } from "../i18n";
import type { Language } from "../settings";

const HEIGHT = 190;
const EDGE = { left: 66, right: 16, top: 12, bottom: 26 };
// The width of a time below the chart, at least.
const LABEL = 74;

export interface HistoryLine {
  name: string;
  colour: "c1" | "c2" | "c3" | "c4";
  values: (number | null)[];
}

export function HistoryChart({
  title,
  unit,
  times,
  lines,
}: {
  title: string;
  unit: Unit;
  // Milliseconds since 1970.
  times: number[];
  lines: HistoryLine[];
}) {
  const language = useLanguage();
  const host = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(560);
  const [pointed, setPointed] = useState<number | null>(null);
  useEffect(() => {
    const place = host.current;
    if (place === null) return;
    const resized = new ResizeObserver(() => setWidth(Math.max(place.clientWidth, 220)));
    resized.observe(place);
    return () => resized.disconnect();
  }, []);
  const from = times[0] ?? 0;
  const until = Math.max(times[times.length - 1] ?? 0, from + 60_000);
  const all = lines.flatMap(({ values }) => values.filter((value) => value !== null));
  const [, top] = fromZero(Math.max(...all, 0), unit, 4);
  const ticks = linearTicks(0, top, unit, 4);
  const step = ticks.length > 1 ? ticks[1]! - ticks[0]! : 1;
  const inner = width - EDGE.left - EDGE.right;
  const x = (at: number) => EDGE.left + ((at - from) / (until - from)) * inner;
  const y = (value: number) =>
    HEIGHT - EDGE.bottom - (value / top) * (HEIGHT - EDGE.top - EDGE.bottom);
  const nearest = (clientX: number) => {
    const left = host.current?.getBoundingClientRect().left ?? 0;
    const wanted = from + ((clientX - left - EDGE.left) / Math.max(inner, 1)) * (until - from);
    return times.reduce(
      (best, at, index) =>
        Math.abs(at - wanted) < Math.abs((times[best] ?? 0) - wanted) ? index : best,
      0,
    );
  };
  const at = pointed === null ? undefined : times[pointed];
  return (
    <figure class="history">
      <figcaption>{title}</figcaption>
      {lines.length > 1 && (
        <ul class="legend">
          {lines.map(({ name, colour }) => (
            <li key={name} class={colour}>
              {name}
            </li>
          ))}
        </ul>
      )}
      <div class="trend" ref={host}>
        <svg
          width={width}
          height={HEIGHT}
          role="img"
          aria-label={inWords(title, unit, lines)}
          onPointerMove={(event) => setPointed(nearest(event.clientX))}
          onPointerLeave={() => setPointed(null)}
        >
          {ticks.map((value) => (
            <g key={value}>
              <line class="grid" x1={EDGE.left} x2={width - EDGE.right} y1={y(value)} y2={y(value)} />
              <text class="y" x={EDGE.left - 8} y={y(value) + 4}>
                {tick(value, step, unit)}
              </text>
            </g>
          ))}
          {timeTicks(from, until, Math.max(Math.floor(inner / LABEL), 1)).map((moment) => (
            <text key={moment} x={x(moment)} y={HEIGHT - 8}>
              {timeOf(moment, language)}
            </text>
          ))}
          {lines.map(({ name, colour, values }) => (
            <path key={name} class={`line ${colour}`} d={pathOf(times, values, x, y)} />
          ))}
          {at !== undefined && (
            <line class="pointed" x1={x(at)} x2={x(at)} y1={EDGE.top} y2={HEIGHT - EDGE.bottom} />
          )}
        </svg>
        {at !== undefined && pointed !== null && (
          <div class="tip" style={{ left: `${Math.min(x(at) + 8, width - 150)}px`, top: "10px" }}>
            <b>{timeOf(at, language, true)}</b>
            {lines.map(({ name, values }) => {
              const value = values[pointed];
              return (
                <small key={name}>
                  {lines.length > 1 ? `${name}: ` : ""}
                  {value == null ? "–" : show(value, unit)}
                </small>
              );
            })}
          </div>
        )}
      </div>
    </figure>
  );
}

function inWords(title: string, unit: Unit, lines: HistoryLine[]): string {
  const values = lines.flatMap(({ name, values: all }) => {
    const latest = all[all.length - 1];
    return latest == null ? [] : [`${name} ${show(latest, unit)}`];
  });
  return values.length > 0 ? `${title}: ${values.join(", ")}` : title;
}

// A line that is interrupted where there is no value.
export function pathOf(
  times: number[],
  values: (number | null)[],
  x: (at: number) => number,
  y: (value: number) => number,
): string {
  let isDown = false;
  return times
    .map((at, index) => {
      const value = values[index];
      if (value == null) {
        isDown = false;
        return "";
      }
      const command = isDown ? "L" : "M";
      isDown = true;
      return `${command}${x(at).toFixed(1)} ${y(value).toFixed(1)}`;
    })
    .join("");
}

const STEPS_MS = [60, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600].map((s) => s * 1000);

// Round times between two, at most so many.
export function timeTicks(from: number, until: number, most: number): number[] {
  const step =
    STEPS_MS.find((one) => (until - from) / one <= most) ?? STEPS_MS[STEPS_MS.length - 1]!;
  const ticks = [];
  for (let at = Math.ceil(from / step) * step; at <= until; at += step) ticks.push(at);
  return ticks;
}

function timeOf(at: number, language: Language, withSeconds = false): string {
  return new Intl.DateTimeFormat(language === "zh" ? "zh-CN" : "en-GB", {
    hour: "2-digit",
    minute: "2-digit",
    ...(withSeconds ? { second: "2-digit" } : {}),
    hourCycle: "h23",
  }).format(at);
}

// Counts since the start as rates; null across a restart of the broker.
export function ratesOf(times: number[], counts: number[]): (number | null)[] {
  return counts.map((count, index) => {
    const before = counts[index - 1];
    const seconds = (times[index]! - (times[index - 1] ?? NaN)) / 1000;
    return before === undefined || !(seconds > 0) || count < before
      ? null
      : (count - before) / seconds;
  });
}
