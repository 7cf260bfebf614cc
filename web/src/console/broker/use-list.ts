// Long lists of the broker, page by page.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";

import { ApiError } from "../api";
import { ask } from "./api";

const PAGE = 100;
// A page of more rows would be slow: a filter finds what is looked for.
const ROWS_MAX = 3000;

export interface List<T> {
  rows: T[];
  isLoading: boolean;
  error: ApiError | null;
  // There are more, which `more` loads; `isFull`: a filter is needed to see them.
  hasMore: boolean;
  isFull: boolean;
  more: () => void;
  reload: () => void;
}

interface ListState<T> {
  key: string;
  rows: T[];
  next: string | null;
  error: ApiError | null;
}

// The rows in the field `name` of the answers; null: nothing is asked for.
export function useList<T>(
  pieces: string[] | null,
  query: Record<string, string>,
  name: string,
  hasLimit = true,
): List<T> {
  const key = pieces === null ? "" : JSON.stringify([pieces, query]);
  const [state, setState] = useState<ListState<T>>({ key: "", rows: [], next: null, error: null });
  const [isLoading, setLoading] = useState(key !== "");
  const [turn, setTurn] = useState(0);
  const running = useRef<AbortController | null>(null);

  const load = useCallback(
    (cursor: string | null) => {
      running.current?.abort();
      const abort = new AbortController();
      running.current = abort;
      const [path, filters] = JSON.parse(key) as [string[], Record<string, string>];
      const limit = hasLimit ? { limit: String(PAGE) } : {};
      const wanted = { ...filters, ...limit, ...(cursor === null ? {} : { cursor }) };
      setLoading(true);
      ask<Record<string, unknown>>(path, wanted, abort.signal).then(
        (page) => {
          if (abort.signal.aborted) return;
          const rows = (page[name] ?? []) as T[];
          const next = typeof page["next"] === "string" ? page["next"] : null;
          setState((old) => ({
            key,
            rows: cursor === null ? rows : [...old.rows, ...rows],
            next,
            error: null,
          }));
          setLoading(false);
        },
        (error: unknown) => {
          if (abort.signal.aborted) return;
          const known = error instanceof ApiError ? error : new ApiError(String(error), 0);
          setState((old) => ({
            key,
            rows: old.key === key ? old.rows : [],
            next: old.key === key ? old.next : null,
            error: known,
          }));
          setLoading(false);
        },
      );
    },
    [key, name, hasLimit],
  );

  useEffect(() => {
    if (key === "") {
      setLoading(false);
      return;
    }
    load(null);
    return () => running.current?.abort();
  }, [key, turn, load]);

  const isOwn = key !== "" && state.key === key;
  const rows = isOwn ? state.rows : [];
  const next = isOwn ? state.next : null;
  return {
    rows,
    isLoading: key !== "" && (isLoading || !isOwn),
    error: isOwn ? state.error : null,
    hasMore: next !== null,
    isFull: rows.length >= ROWS_MAX,
    more: () => {
      if (next !== null && !isLoading) load(next);
    },
    reload: () => setTurn((number) => number + 1),
  };
}
