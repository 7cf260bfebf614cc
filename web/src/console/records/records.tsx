// All runs: found, sorted, annotated, compared, deleted.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";

import { get } from "../api";
import { useChanges } from "../changes";
import { useWords } from "../i18n";
import { useLoad } from "../load";
import { useIsOperator } from "../machine";
import { Icon } from "../parts/icon";
import { Empty, Failure, Loading } from "../parts/notice";
import { address, query, usePlace } from "../router";
import { remove } from "../run-actions";
import { settings } from "../settings";
import { useStore } from "../store";
import { useTitle } from "../title";
import { useWidth } from "../width";
import type { Page, Row } from "../types";
import { shownColumns } from "./columns";
import { FilterBar } from "./filter-bar";
import { apiQuery, filtersOf, isFiltered } from "./filters";
import { Pager } from "./pager";
import { RunTable } from "./run-table";

// A comparison has at most so many sides.
const COMPARED_MAX = 5;
// Changes of runs that are not shown load the list anew, at most this often.
const RELOAD_MS = 2000;

export function Records() {
  const t = useWords();
  const isOperator = useIsOperator();
  const place = usePlace();
  const filters = filtersOf(place.query);
  const { columns: chosen } = useStore(settings);
  const columns = shownColumns(chosen, useWidth());
  const [selected, setSelected] = useState<string[]>([]);
  const asked = apiQuery(filters);
  const page = useLoad<Page>(asked.toString(), (signal) => get(["runs"], asked, signal), true);
  useTitle(t.records.title);

  const changed = useCallback(
    (row: Row) => {
      if (page.data === null) return;
      const rows = page.data.rows.map((old) => (old.id === row.id ? row : old));
      page.put({ ...page.data, rows });
    },
    [page.data, page.put],
  );
  const pending = useRef<ReturnType<typeof setTimeout> | null>(null);
  useEffect(
    () => () => {
      if (pending.current !== null) clearTimeout(pending.current);
    },
    [],
  );
  useChanges(
    useCallback(
      (change) => {
        if (change.type === "queue") return;
        const known =
          change.type === "run"
            ? page.data?.rows.find(({ id }) => id === change.row.id)
            : undefined;
        if (known !== undefined && change.type === "run" && known.state === change.row.state) {
          changed(change.row);
          return;
        }
        if (pending.current !== null) return;
        pending.current = setTimeout(() => {
          pending.current = null;
          page.reload();
        }, RELOAD_MS);
      },
      [page.data, page.reload, changed],
    ),
  );

  const rows = page.data?.rows ?? [];
  const sortBy = (sort: string) => query({ sort, cursor: null, page: null }, { push: true });
  const deleted = (ids: string[]) => {
    setSelected((old) => old.filter((id) => !ids.includes(id)));
    void remove(ids, page.reload);
  };
  return (
    <>
      <div class="page-head">
        <h1>{t.records.title}</h1>
        {page.data !== null && <span class="quiet">{t.records.total(page.data.total)}</span>}
        <span class="filler" />
        <a class="button quiet" href="/trash">
          <Icon name="trash" />
          {t.trash.title}
        </a>
      </div>
      <FilterBar filters={filters} facets={page.data?.facets} columns={columns} />
      {page.error && <Failure error={page.error} retry={page.reload} />}
      {selected.length > 0 && (
        <div class="selection" role="status">
          <b>{t.records.selected(selected.length)}</b>
          {selected.length >= 2 && selected.length <= COMPARED_MAX ? (
            <a class="button primary" href={address("/compare", { ids: selected.join(",") })}>
              {t.records.compare}
            </a>
          ) : (
            <span class="quiet">{t.records.compareHint}</span>
          )}
          {isOperator && (
            <button type="button" class="button danger" onClick={() => deleted(selected)}>
              <Icon name="trash" />
              {t.records.remove}
            </button>
          )}
          <button type="button" class="button quiet" onClick={() => setSelected([])}>
            {t.words.none}
          </button>
        </div>
      )}
      {page.data === null && !page.error && <Loading lines={12} />}
      {page.data !== null &&
        rows.length === 0 &&
        (isFiltered(filters) ? (
          <Empty icon="search" title={t.records.noneTitle} text={t.records.noneText}>
            <a class="button" href="/runs">
              {t.records.clear}
            </a>
          </Empty>
        ) : (
          <Empty icon="columns" title={t.records.emptyTitle} text={t.records.emptyText}>
            {isOperator && (
              <a class="button primary" href="/new">
                {t.nav.newTest}
              </a>
            )}
          </Empty>
        ))}
      {rows.length > 0 && (
        <>
          <RunTable
            rows={rows}
            columns={columns}
            sort={filters.sort}
            sortBy={sortBy}
            selected={selected}
            select={(id, on) =>
              setSelected((old) => (on ? [...old, id] : old.filter((one) => one !== id)))
            }
            changed={changed}
            remove={(id) => deleted([id])}
            isStale={page.isLoading}
          />
          <Pager
            filters={filters}
            shown={rows.length}
            total={page.data?.total ?? 0}
            next={page.data?.next ?? null}
          />
        </>
      )}
    </>
  );
}
