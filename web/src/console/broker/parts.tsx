// Parts that the pages of the broker share.

import type { ComponentChildren } from "preact";

import { useWords } from "../i18n";
import { Icon } from "../parts/icon";
import { Failure, Loading } from "../parts/notice";
import { useTyped } from "../parts/typed";
import { Chip } from "../parts/verdict";
import { query } from "../router";
import type { List } from "./use-list";

// A pause in typing after which the broker is asked.
const PAUSE_MS = 350;

export interface Column<T> {
  name: string;
  unit?: string;
  isNumber?: boolean;
  // Left out in a narrow window.
  isMinor?: boolean;
  cell: (row: T) => ComponentChildren;
}

export function Table<T>({
  label,
  columns,
  rows,
  keyOf,
}: {
  label: string;
  columns: Column<T>[];
  rows: T[];
  keyOf: (row: T, index: number) => string;
}) {
  const cls = ({ isNumber, isMinor }: Column<T>) =>
    [isNumber ? "number" : "", isMinor ? "minor" : ""].filter((part) => part !== "").join(" ");
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={label}>
      <table class="plain broker-table">
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.name} scope="col" class={cls(column)}>
                {column.name}
                {column.unit !== undefined && <small>{column.unit}</small>}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={keyOf(row, index)}>
              {columns.map((column, at) =>
                at === 0 ? (
                  <th key={column.name} scope="row" class={cls(column)}>
                    {column.cell(row)}
                  </th>
                ) : (
                  <td key={column.name} class={cls(column)}>
                    {column.cell(row)}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

// A list with its errors, its emptiness, and the way to more of it.
export function ListOf<T>({
  list,
  empty,
  label,
  columns,
  keyOf,
}: {
  list: List<T>;
  empty: string;
  label: string;
  columns: Column<T>[];
  keyOf: (row: T, index: number) => string;
}) {
  const t = useWords();
  const { rows, isLoading, error } = list;
  return (
    <>
      {error && <Failure error={error} retry={list.reload} />}
      {rows.length === 0 && isLoading && <Loading lines={5} />}
      {rows.length === 0 && !isLoading && !error && <p class="quiet">{empty}</p>}
      {rows.length > 0 && <Table label={label} columns={columns} rows={rows} keyOf={keyOf} />}
      {rows.length > 0 && (
        <p class="list-foot">
          <span class="quiet">
            {list.hasMore ? t.broker.atLeastRows(rows.length) : t.broker.rows(rows.length)}
          </span>
          {list.hasMore && !list.isFull && (
            <button type="button" class="button small" disabled={isLoading} onClick={list.more}>
              <Icon name="down" />
              {t.broker.more}
            </button>
          )}
          {list.hasMore && list.isFull && <span class="quiet">{t.broker.tooMany}</span>}
        </p>
      )}
    </>
  );
}

// A text that is a part of the address, written after a pause in typing.
export function AddressField({
  name,
  label,
  value,
  placeholder,
}: {
  name: string;
  label: string;
  value: string;
  placeholder?: string;
}) {
  const [typed, setTyped] = useTyped(value, PAUSE_MS, (text) => query({ [name]: text }));
  return (
    <label class="inline-field">
      <span>{label}</span>
      <input
        type="text"
        value={typed}
        autocomplete="off"
        spellcheck={false}
        {...(placeholder === undefined ? {} : { placeholder })}
        onInput={(event) => setTyped(event.currentTarget.value)}
      />
    </label>
  );
}

export function AddressSelect({
  name,
  label,
  value,
  options,
}: {
  name: string;
  label: string;
  value: string;
  options: [value: string, text: string][];
}) {
  return (
    <label class={value === "" ? "filter" : "filter active"}>
      <span>{label}</span>
      <select value={value} onChange={(event) => query({ [name]: event.currentTarget.value })}>
        {options.map(([one, text]) => (
          <option key={one} value={one}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

// Names and values.
export function Facts({ rows }: { rows: [string, ComponentChildren][] }) {
  return (
    <dl class="broker-facts">
      {rows.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

export function Connected({ is }: { is: boolean }) {
  const t = useWords();
  return <Chip tone={is ? "good" : "calm"}>{is ? t.broker.connected : t.broker.away}</Chip>;
}

export function clientAddress(clientId: string): string {
  return `/broker/clients/${encodeURIComponent(clientId)}`;
}

export function ClientLink({ id }: { id: string }) {
  return (
    <a class="client-id" href={clientAddress(id)}>
      {id}
    </a>
  );
}
