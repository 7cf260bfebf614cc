// The line of a trend: a point per run, change points, and the baseline.

import { useEffect, useRef, useState } from "preact/hooks";

import type { Unit } from "../../data";
import { tick } from "../../format";
import { fromZero, linearTicks } from "../../scale";
import { useLanguage, useWords } from "../i18n";
import { navigate, runAddress } from "../router";
import { inUnit, moment, runName, signed } from "../show";
import type { TrendPoint } from "../types";
import type { Mark } from "./marks";

const HEIGHT = 320;
const EDGE = { left: 70, right: 20, top: 28, bottom: 48 };
const UNITS: Record<"us" | "per_s" | "percent", Unit> = {
  us: "latency",
  per_s: "rate",
  percent: "percent",
};
// The width of a label of a version or a date, at least.
const LABEL = 92;

export function TrendChart({
  points,
  changes,
  unit,
  baseline,
  name,
}: {
  points: TrendPoint[];
  changes: Mark[];
  unit: "us" | "per_s" | "percent";
  baseline: string | null;
  name: string;
}) {
  const t = useWords();
  const language = useLanguage();
  const host = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(800);
  const [pointed, setPointed] = useState<number | null>(null);
  useEffect(() => {
    const place = host.current;
    if (place === null) return;
    const resized = new ResizeObserver(() => setWidth(Math.max(place.clientWidth, 240)));
    resized.observe(place);
    return () => resized.disconnect();
  }, []);

  const values = points.flatMap(({ value }) => (value === null ? [] : [value]));
  const [, to] = fromZero(Math.max(...values, 0), UNITS[unit], 5);
  const ticks = linearTicks(0, to, UNITS[unit], 5);
  const step = ticks.length > 1 ? ticks[1]! - ticks[0]! : 1;
  const inner = width - EDGE.left - EDGE.right;
  const x = (index: number) =>
    EDGE.left + (points.length > 1 ? (index / (points.length - 1)) * inner : inner / 2);
  const y = (value: number) =>
    HEIGHT - EDGE.bottom - (value / to) * (HEIGHT - EDGE.top - EDGE.bottom);
  const every = Math.max(Math.ceil(points.length / Math.max(Math.floor(inner / LABEL), 1)), 1);
  const base = points.find(({ id }) => id === baseline)?.value ?? null;
  const at = pointed === null ? undefined : points[pointed];
  const nearest = (clientX: number) => {
    const left = host.current?.getBoundingClientRect().left ?? 0;
    const share = (clientX - left - EDGE.left) / Math.max(inner, 1);
    return Math.min(Math.max(Math.round(share * (points.length - 1)), 0), points.length - 1);
  };
  return (
    <div class="trend" ref={host}>
      <svg
        width={width}
        height={HEIGHT}
        role="img"
        aria-label={name}
        onPointerMove={(event) => setPointed(nearest(event.clientX))}
        onPointerLeave={() => setPointed(null)}
        onClick={(event) => {
          const point = points[nearest(event.clientX)];
          if (point !== undefined) navigate(runAddress(point.id));
        }}
      >
        {ticks.map((value) => (
          <g key={value}>
            <line class="grid" x1={EDGE.left} x2={width - EDGE.right} y1={y(value)} y2={y(value)} />
            <text class="tick y" x={EDGE.left - 8} y={y(value) + 4}>
              {tick(value, step, UNITS[unit])}
            </text>
          </g>
        ))}
        {points.map((point, index) =>
          index % every === 0 ? (
            <g key={point.id}>
              <text class="tick" x={x(index)} y={HEIGHT - EDGE.bottom + 18}>
                {dayOf(point.started, language)}
              </text>
              <text class="tick" x={x(index)} y={HEIGHT - EDGE.bottom + 34}>
                {short(point.version)}
              </text>
            </g>
          ) : null,
        )}
        {changes.map(({ index, percent }) => {
          const isLate = x(index) > width - 110;
          return (
            <g key={index} class="change-mark">
              <line
                x1={x(index - 0.5)}
                x2={x(index - 0.5)}
                y1={EDGE.top - 8}
                y2={HEIGHT - EDGE.bottom}
              />
              <text
                x={x(index - 0.5) + (isLate ? -5 : 5)}
                y={EDGE.top - 12}
                class={isLate ? "end" : "start"}
              >
                {percent === null ? t.trends.change : signed(percent, "percent", "")}
              </text>
            </g>
          );
        })}
        {base !== null && (
          <g class="baseline">
            <line x1={EDGE.left} x2={width - EDGE.right} y1={y(base)} y2={y(base)} />
            <text x={width - EDGE.right} y={y(base) - 6} class="end">
              {t.trends.baseline}
            </text>
          </g>
        )}
        {pieces(points).map((piece) => (
          <polyline
            key={piece[0]}
            class="line c1"
            points={piece.map((index) => `${x(index)},${y(points[index]!.value!)}`).join(" ")}
          />
        ))}
        {points.map((point, index) =>
          point.value === null || (points.length > 150 && index !== pointed) ? null : (
            <circle
              key={point.id}
              class={index === pointed ? "dot c1 pointed" : "dot c1"}
              cx={x(index)}
              cy={y(point.value)}
              r={index === pointed ? 6 : 4}
            />
          ),
        )}
      </svg>
      {at !== undefined && pointed !== null && (
        <div class="tip" style={{ transform: `translate(${tipLeft(x(pointed), width)}px, 8px)` }}>
          <p>{runName({ name: at.name ?? at.id })}</p>
          <div class="c1">
            <span>{moment(at.started, language)}</span>
            <b>{inUnit(at.value, unit)}</b>
          </div>
          <small>{at.version}</small>
        </div>
      )}
    </div>
  );
}

function tipLeft(x: number, width: number): number {
  return Math.round(x > width / 2 ? x - 250 : x + 12);
}

// Indices of points with values, piece by piece.
export function pieces(points: TrendPoint[]): number[][] {
  const all: number[][] = [];
  let piece: number[] = [];
  points.forEach(({ value }, index) => {
    if (value !== null) piece.push(index);
    else if (piece.length > 0) {
      all.push(piece);
      piece = [];
    }
  });
  if (piece.length > 0) all.push(piece);
  return all;
}

function dayOf(iso: string, language: "en" | "zh"): string {
  return new Intl.DateTimeFormat(language === "zh" ? "zh-CN" : "en-GB", {
    month: "short",
    day: "numeric",
  }).format(new Date(iso));
}

function short(version: string): string {
  return version.length > 14 ? `${version.slice(0, 13)}…` : version;
}
