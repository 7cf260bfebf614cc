// The bounds of a variable in words.

import { thousands } from "../../format";
import type { Dictionary } from "../i18n";
import type { Variable } from "../types";

function shown(value: number): string {
  return Number.isInteger(value) ? thousands(value) : String(value);
}

export function boundsOf({ minimum, maximum, choices }: Variable, t: Dictionary): string {
  if (choices !== null) return "";
  if (minimum !== null && maximum !== null) return t.make.range(shown(minimum), shown(maximum));
  if (minimum !== null) return t.make.atLeast(shown(minimum));
  return maximum !== null ? t.make.atMost(shown(maximum)) : "";
}
