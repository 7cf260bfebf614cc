import assert from "node:assert/strict";
import { test } from "node:test";

import { clockOf } from "../src/console/agents/clock";

test("the clock of an agent is told with its bound, or that it is this machine's", () => {
  const words = { own: "own", silent: "silent" };
  const clock = (shift: number | null, error: number | null) =>
    clockOf({ clock_shift_ns: shift, clock_error_ns: error }, words);
  assert.equal(clock(-10_000_123_456, 250_000), "+10000.123 ± 0.250 ms");
  assert.equal(clock(1_500_000, 1_000), "−1.500 ± 0.001 ms");
  assert.equal(clock(0, 0), "own");
  assert.equal(clock(null, null), "silent");
});
