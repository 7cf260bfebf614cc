// Figures formatted as the program formats them elsewhere on the page.

import type { Unit } from "./data";

export function thousands(value: number): string {
  return Math.round(value).toString().replace(/\B(?=(\d{3})+$)/g, ",");
}

export function rate(value: number): string {
  return value >= 99.95 ? thousands(value) : value.toFixed(1);
}

function three(value: number): string {
  if (value >= 99.95) return value.toFixed(0);
  return value >= 9.995 ? value.toFixed(1) : value.toFixed(2);
}

export function latency(us: number): string {
  if (us < 999.5) return `${us.toFixed(0)} µs`;
  return us < 999_500 ? `${three(us / 1e3)} ms` : `${three(us / 1e6)} s`;
}

const BYTES = ["B", "KiB", "MiB", "GiB", "TiB"];

function inBytes(value: number): [number, string] {
  let unit = 0;
  let scaled = value;
  while (scaled >= 1024 && unit + 1 < BYTES.length) {
    scaled /= 1024;
    unit += 1;
  }
  return [scaled, BYTES[unit]!];
}

export function bytes(value: number): string {
  const [scaled, unit] = inBytes(value);
  return unit === "B" ? `${Math.round(scaled)} B` : `${scaled.toFixed(1)} ${unit}`;
}

// A quantile in percent, given as its number of nines.
export function quantile(nines: number): string {
  const whole = Math.abs(nines - Math.round(nines)) < 1e-9;
  let digits = Math.max(Math.floor(nines - 1e-9), 0) + 1;
  if (whole) digits = Math.max(Math.round(nines) - 2, 0);
  else if (nines < 0.5) digits = 0;
  return `${((1 - 10 ** -nines) * 100).toFixed(digits)} %`;
}

// A value as the tooltip shows it.
export function show(value: number, unit: Unit): string {
  switch (unit) {
    case "number": return Number.isInteger(value) ? thousands(value) : value.toFixed(2);
    case "seconds": return `${value.toFixed(1)} s`;
    case "rate": return `${rate(value)}/s`;
    case "latency": return latency(value);
    case "percent": return `${value.toFixed(1)} %`;
    case "bytes": return bytes(value);
    case "bytes_per_s": return `${bytes(value)}/s`;
    case "nines": return quantile(value);
  }
}

// Without trailing zeros.
function trimmed(value: number): string {
  return String(Number(value.toFixed(3)));
}

// A round value on an axis whose ticks are `step` apart.
export function tick(value: number, step: number, unit: Unit): string {
  switch (unit) {
    case "latency":
      // A unit would be another one than that of the other ticks.
      if (value === 0) return "0";
      if (value < 1e3) return `${trimmed(value)} µs`;
      return value < 1e6 ? `${trimmed(value / 1e3)} ms` : `${trimmed(value / 1e6)} s`;
    case "bytes":
    case "bytes_per_s": {
      if (value === 0) return "0";
      const [scaled, name] = inBytes(value);
      return `${trimmed(scaled)} ${name}`;
    }
    case "nines": return quantile(value);
    case "rate":
      if (value >= 10_000) return `${trimmed(value / 1e3)}K`;
      break;
    default:
  }
  const digits = step < 1 ? Math.ceil(-Math.log10(step) - 1e-9) : 0;
  return digits > 0 ? value.toFixed(digits) : thousands(value);
}

// The identifier of a run without the date at its beginning: people know it by what follows.
export function withoutDate(identifier: string): string {
  return identifier.replace(/^\d{8}-\d{6}-(?=.)/, "");
}
