// The way through the pages of the records.

import { useRef } from "preact/hooks";

import { useWords } from "../i18n";
import { Icon } from "../parts/icon";
import { query } from "../router";
import type { Filters } from "./filters";
import { LIMIT } from "./filters";

export function Pager({
  filters,
  shown,
  total,
  next,
}: {
  filters: Filters;
  shown: number;
  total: number;
  next: string | null;
}) {
  const t = useWords();
  // Cursors of the pages before, by their number; after a reload only the first is known.
  const cursors = useRef(new Map<number, string>());
  cursors.current.set(filters.page, filters.cursor);
  const { page } = filters;
  if (total <= LIMIT && page === 1) return null;
  const from = (page - 1) * LIMIT + 1;
  const go = (number: number, cursor: string) => {
    query({ cursor, page: number > 1 ? String(number) : null }, { push: true });
    scrollTo(0, 0);
  };
  const before = cursors.current.get(page - 1);
  return (
    <nav class="pager" aria-label={t.records.pages}>
      <button
        type="button"
        class="button"
        disabled={page <= 1}
        onClick={() => (before === undefined ? go(1, "") : go(page - 1, before))}
      >
        <Icon name="left" />
        {t.records.previous}
      </button>
      <span>{t.records.range(from, from + shown - 1, total)}</span>
      <button
        type="button"
        class="button"
        disabled={next === null}
        onClick={() => next !== null && go(page + 1, next)}
      >
        {t.records.next}
        <Icon name="right" />
      </button>
    </nav>
  );
}
