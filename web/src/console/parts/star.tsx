// The star of a run.

import { useWords } from "../i18n";
import { annotate } from "../run-actions";
import { runName } from "../show";
import type { Row } from "../types";
import { Icon } from "./icon";

export function Star({
  row,
  changed,
  isLocked,
}: {
  row: Row;
  changed: (row: Row) => void;
  isLocked: boolean;
}) {
  const t = useWords();
  return (
    <button
      type="button"
      class="icon-button star"
      aria-pressed={row.starred}
      disabled={isLocked}
      aria-label={t.records.star(runName(row))}
      onClick={() => {
        void annotate(row.id, { starred: !row.starred }).then(
          (next) => next !== null && changed(next),
        );
      }}
    >
      <Icon name="star" filled={row.starred} />
    </button>
  );
}
