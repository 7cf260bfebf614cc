// Times and figures as the pages show them.

import { bytes, latency, rate, thousands, withoutDate } from "../format";
import type { Language } from "./settings";
import type { Row } from "./types";

export const NONE = "–";

const LOCALES: Record<Language, string> = { en: "en-GB", zh: "zh-CN" };

// A moment in the viewer's zone, or in `zone`: the date, and the time to the minute.
export function moment(iso: string | null, language: Language, zone?: string): string {
  const date = iso === null ? null : new Date(iso);
  if (date === null || Number.isNaN(date.getTime())) return NONE;
  const parts = new Intl.DateTimeFormat(LOCALES[language], {
    year: "numeric",
    month: "short",
    day: "numeric",
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23",
    ...(zone === undefined ? {} : { timeZone: zone }),
  });
  return parts.format(date);
}

// The time of day to the millisecond, of milliseconds since 1970.
export function timeOfDay(ms: number | null, language: Language): string {
  if (ms === null) return NONE;
  return new Intl.DateTimeFormat(LOCALES[language], {
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    fractionalSecondDigits: 3,
    hourCycle: "h23",
  }).format(ms);
}

// The same with seconds and the zone, for tooltips.
export function exactMoment(iso: string | null, language: Language, zone?: string): string {
  const date = iso === null ? null : new Date(iso);
  if (date === null || Number.isNaN(date.getTime())) return NONE;
  return new Intl.DateTimeFormat(LOCALES[language], {
    year: "numeric",
    month: "short",
    day: "numeric",
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    hourCycle: "h23",
    timeZoneName: "longOffset",
    ...(zone === undefined ? {} : { timeZone: zone }),
  }).format(date);
}

// The viewer's zone by name and offset: `Europe/Berlin (GMT+01:00)`.
export function zoneName(now: Date = new Date(), zone?: string): string {
  const format = new Intl.DateTimeFormat("en", {
    timeZoneName: "longOffset",
    ...(zone === undefined ? {} : { timeZone: zone }),
  });
  const name = format.resolvedOptions().timeZone;
  const offset = format.formatToParts(now).find(({ type }) => type === "timeZoneName")?.value;
  return offset === undefined || offset === name ? name : `${name} (${offset})`;
}

// A length of time: `45 s`, `3 min 20 s`, `2 h 5 min`.
export function span(seconds: number | null, language: Language): string {
  if (seconds === null || !Number.isFinite(seconds)) return NONE;
  const [h, min, s] = language === "zh" ? ["小时", "分", "秒"] : ["h", "min", "s"];
  const whole = Math.max(Math.round(seconds), 0);
  if (whole < 60) {
    const shown = seconds < 10 && whole !== seconds ? seconds.toFixed(1) : String(whole);
    return `${shown} ${s}`;
  }
  const [hours, minutes, rest] = [
    Math.floor(whole / 3600),
    Math.floor(whole / 60) % 60,
    whole % 60,
  ];
  if (hours > 0)
    return minutes > 0 ? `${thousands(hours)} ${h} ${minutes} ${min}` : `${thousands(hours)} ${h}`;
  return rest > 0 ? `${minutes} ${min} ${rest} ${s}` : `${minutes} ${min}`;
}

export function count(value: number | null | undefined): string {
  return value === null || value === undefined ? NONE : thousands(value);
}

export function perSecond(value: number | null | undefined): string {
  return value === null || value === undefined ? NONE : rate(value);
}

export function us(value: number | null | undefined): string {
  return value === null || value === undefined ? NONE : latency(value);
}

export function size(value: number | null | undefined): string {
  return value === null || value === undefined ? NONE : bytes(value);
}

// A percentage without its sign; as many digits as say something.
export function percent(value: number | null | undefined): string {
  if (value === null || value === undefined) return NONE;
  if (value === 0) return "0";
  if (Math.abs(value) < 0.01) return value < 0 ? "> -0.01" : "< 0.01";
  return value.toFixed(Math.abs(value) < 1 ? 2 : 1);
}

// A value of a comparison in its unit.
export function inUnit(value: number | null, unit: string): string {
  if (value === null) return NONE;
  switch (unit) {
    case "microseconds":
    case "us":
      return us(value);
    case "cpu_microseconds":
      return `${value.toFixed(2)} µs`;
    case "percent":
      return `${percent(value)} %`;
    case "bytes":
      return size(value);
    case "messages_per_s":
    case "per_second":
    case "per_s":
      return `${perSecond(value)}/s`;
    default:
      return count(value);
  }
}

// A change with its sign.
export function signed(value: number | null, scale: "percent" | "absolute", unit: string): string {
  if (value === null) return NONE;
  const sign = value > 0 ? "+" : value < 0 ? "−" : "±";
  const shown = Math.abs(value);
  return scale === "percent" ? `${sign}${shown.toFixed(1)} %` : `${sign}${inUnit(shown, unit)}`;
}

// What a run's brokers are called.
export function targetName(target: string, own: string): string {
  return target
    .split(", ")
    .map((one) => (one === "" || one === "builtin" ? own : one))
    .join(", ");
}

// What a run is called: a run without a name of its own by that of its directory, without the date.
export function runName(row: Pick<Row, "name">): string {
  return withoutDate(row.name);
}
