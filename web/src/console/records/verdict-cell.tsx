// The verdict of a run in a table; of one under way its progress.

import { RunChip } from "../parts/verdict";
import { shareOf, useNow } from "../parts/progress";
import type { Row } from "../types";

export function VerdictOrState({ row }: { row: Row }) {
  const isRunning = row.state === "running";
  const now = useNow(isRunning);
  const share = isRunning ? shareOf(row, now).share : null;
  return (
    <span class="verdict-cell">
      <RunChip row={row} />
      {share !== null && <small>{Math.floor(share * 100)} %</small>}
    </span>
  );
}
