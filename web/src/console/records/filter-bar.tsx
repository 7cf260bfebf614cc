// Search, filters and the choice of columns.

import { useEffect, useRef } from "preact/hooks";

import { useWords } from "../i18n";
import { Icon } from "../parts/icon";
import { Popover } from "../parts/menu";
import { useTyped } from "../parts/typed";
import { query } from "../router";
import { change } from "../settings";
import type { State } from "../types";
import { COLUMNS } from "./columns";
import type { Column } from "./columns";
import { isFiltered } from "./filters";
import type { Filters } from "./filters";

const STATES: State[] = ["running", "queued", "finished", "canceled", "broken"];
const VERDICTS = [
  "ok",
  "threshold_failed",
  "not_sustained",
  "qos_violation",
  "login_violation",
  "generator_bound",
  "disturbed",
  "network_bound",
  "not_steady",
  "aborted",
];
// A pause in typing after which is searched.
const PAUSE_MS = 250;

function set(name: string, value: string): void {
  query({ [name]: value, cursor: null, page: null });
}

export function FilterBar({
  filters,
  facets,
  columns,
}: {
  filters: Filters;
  facets: { scenarios: string[]; tags: string[] } | undefined;
  columns: Column[];
}) {
  const t = useWords();
  // Facets come with the first page only.
  const known = useRef(facets);
  if (facets !== undefined) known.current = facets;
  const scenarios = known.current?.scenarios ?? [];
  const tags = known.current?.tags ?? [];
  return (
    <div class="filters" role="search">
      <Search text={filters.q} />
      <Select
        name="state"
        label={t.records.state}
        value={filters.state}
        options={STATES.map((state) => [state, t.states[state]])}
      />
      <Select
        name="verdict"
        label={t.records.verdict}
        value={filters.verdict}
        options={VERDICTS.map((verdict) => [verdict, t.verdicts[verdict] ?? verdict])}
      />
      <Select
        name="scenario"
        label={t.records.scenario}
        value={filters.scenario}
        options={scenarios.map((name) => [name, name])}
      />
      {(tags.length > 0 || filters.tag !== "") && (
        <Select
          name="tag"
          label={t.records.tag}
          value={filters.tag}
          options={tags.map((name) => [name, name])}
        />
      )}
      <button
        type="button"
        class="button toggle-button"
        aria-pressed={filters.starred}
        onClick={() => set("starred", filters.starred ? "" : "1")}
      >
        <Icon name="star" filled={filters.starred} />
        {t.records.starred}
      </button>
      {isFiltered(filters) && (
        <a class="button quiet" href="/runs">
          {t.records.clear}
        </a>
      )}
      <span class="filler" />
      <Popover
        label={t.records.columns}
        button={
          <>
            <Icon name="columns" />
            {t.records.columns}
          </>
        }
      >
        {() => (
          <fieldset class="column-choice">
            <legend class="hidden-text">{t.records.columns}</legend>
            {COLUMNS.map(({ id }) => {
              const isShown = columns.some((column) => column.id === id);
              const now = columns.map((column) => column.id as string);
              return (
                <label key={id} class="check">
                  <input
                    type="checkbox"
                    checked={isShown}
                    onChange={() =>
                      change({ columns: isShown ? now.filter((one) => one !== id) : [...now, id] })
                    }
                  />
                  <span>{t.columns[id]}</span>
                </label>
              );
            })}
          </fieldset>
        )}
      </Popover>
    </div>
  );
}

function Search({ text }: { text: string }) {
  const t = useWords();
  const [typed, setTyped] = useTyped(text, PAUSE_MS, (text) => set("q", text));
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const focus = (event: KeyboardEvent) => {
      const inField =
        event.target instanceof Element && event.target.closest("input, select, textarea, dialog");
      if (event.key !== "/" || event.ctrlKey || event.metaKey || inField) return;
      event.preventDefault();
      input.current?.focus();
    };
    document.addEventListener("keydown", focus);
    return () => document.removeEventListener("keydown", focus);
  }, []);
  return (
    <label class="search">
      <span class="hidden-text">{t.records.search}</span>
      <Icon name="search" />
      <input
        ref={input}
        type="search"
        value={typed}
        placeholder={t.records.searchHint}
        onInput={(event) => setTyped(event.currentTarget.value)}
      />
      <kbd aria-hidden="true">/</kbd>
    </label>
  );
}

function Select({
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
  const t = useWords();
  const all =
    options.some(([one]) => one === value) || value === ""
      ? options
      : [[value, value] as const, ...options];
  return (
    <label class={value === "" ? "filter" : "filter active"}>
      <span>{label}</span>
      <select value={value} onChange={(event) => set(name, event.currentTarget.value)}>
        <option value="">{t.records.any}</option>
        {all.map(([one, text]) => (
          <option key={one} value={one}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}
