// The table of runs.

import { useState } from "preact/hooks";

import { useLanguage, useWords } from "../i18n";
import { useIsOperator } from "../machine";
import { Annotate } from "../parts/annotate";
import { Icon } from "../parts/icon";
import { Star } from "../parts/star";
import { address, runAddress } from "../router";
import { runName } from "../show";
import type { Row } from "../types";
import type { Column } from "./columns";
import { nextSort } from "./columns";
import { RowMenu } from "./row-menu";

export function RunTable({
  rows,
  columns,
  sort,
  sortBy,
  selected,
  select,
  changed,
  remove,
  isStale,
}: {
  rows: Row[];
  columns: Column[];
  sort: string;
  sortBy: (sort: string) => void;
  selected: string[];
  select: (id: string, on: boolean) => void;
  changed: (row: Row) => void;
  remove: (id: string) => void;
  isStale: boolean;
}) {
  const t = useWords();
  const language = useLanguage();
  const isOperator = useIsOperator();
  const [annotated, setAnnotated] = useState<Row | null>(null);
  return (
    <div class="table-card">
      <table class={isStale ? "records stale" : "records"} aria-busy={isStale}>
        <caption class="hidden-text">{t.records.title}</caption>
        <thead>
          <tr>
            <td class="narrow" />
            <Head
              id="name"
              name={t.columns.name}
              sort={sort}
              sortBy={sortBy}
              isNumber={false}
              isSorted
            />
            {columns.map(({ id, isNumber, isSorted }) => (
              <Head
                key={id}
                id={id}
                name={t.columns[id]}
                {...unitOf(t.columnUnits[id])}
                sort={sort}
                sortBy={sortBy}
                isNumber={isNumber}
                isSorted={isSorted}
              />
            ))}
            <td class="narrow" />
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => {
            const isSelected = selected.includes(row.id);
            return (
              <tr key={row.id} class={isSelected ? "selected" : ""}>
                <td class="narrow">
                  <span class="row-tools">
                    <input
                      type="checkbox"
                      checked={isSelected}
                      aria-label={t.records.select(runName(row))}
                      onChange={(event) => select(row.id, event.currentTarget.checked)}
                    />
                    <Star row={row} changed={changed} isLocked={!isOperator} />
                  </span>
                </td>
                <th scope="row">
                  <a class="run-name" href={runAddress(row.id)}>
                    {runName(row)}
                  </a>
                  <RowLabels row={row} />
                </th>
                {columns.map(({ id, isNumber, cell }) => (
                  <td
                    key={id}
                    class={isNumber ? `number col-${id}` : `col-${id}`}
                    data-name={[t.columns[id], t.columnUnits[id]].filter(Boolean).join(", ")}
                  >
                    {cell(row, t, language)}
                  </td>
                ))}
                <td class="narrow">
                  <RowMenu
                    row={row}
                    annotate={() => setAnnotated(row)}
                    remove={() => remove(row.id)}
                  />
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {annotated !== null && (
        <Annotate row={annotated} close={() => setAnnotated(null)} changed={changed} />
      )}
    </div>
  );
}

function unitOf(unit: string | undefined): { unit?: string } {
  return unit === undefined ? {} : { unit };
}

function Head({
  id,
  name,
  unit,
  sort,
  sortBy,
  isNumber,
  isSorted,
}: {
  id: string;
  name: string;
  unit?: string;
  sort: string;
  sortBy: (sort: string) => void;
  isNumber: boolean;
  isSorted: boolean;
}) {
  const t = useWords();
  const direction = sort === id ? "ascending" : sort === `-${id}` ? "descending" : "none";
  const content = (
    <>
      {name}
      {unit !== undefined && <small>{unit}</small>}
    </>
  );
  return (
    <th
      scope="col"
      class={isNumber ? `number col-${id}` : `col-${id}`}
      {...(isSorted ? { "aria-sort": direction } : {})}
    >
      {isSorted ? (
        <button
          type="button"
          title={t.records.sortBy(name)}
          onClick={() => sortBy(nextSort(sort, id, isNumber))}
        >
          <span>{content}</span>
          {direction !== "none" && <Icon name={direction === "ascending" ? "up" : "down"} />}
        </button>
      ) : (
        <span>{content}</span>
      )}
    </th>
  );
}

function RowLabels({ row }: { row: Row }) {
  const t = useWords();
  if (row.tags.length === 0 && row.note === "" && row.baseline !== true) return null;
  return (
    <span class="labels">
      {row.baseline === true && (
        <span class="tag strong">
          <Icon name="flag" />
          {t.run.baseline}
        </span>
      )}
      {row.tags.map((tag) => (
        <a key={tag} class="tag" href={address("/runs", { tag })}>
          {tag}
        </a>
      ))}
      {row.note !== "" && (
        <span class="row-note" title={row.note}>
          {row.note}
        </span>
      )}
    </span>
  );
}
