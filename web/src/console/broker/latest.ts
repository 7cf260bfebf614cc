// Rows that arrive live: the latest first, a bounded number of them, drawn once per frame however
// many arrive together.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";

// Rows that a page keeps; the oldest go.
const KEPT_MAX = 500;

export type Numbered<T> = T & { number: number };

export interface Latest<T> {
  rows: Numbered<T>[];
  add: (row: T) => void;
  clear: () => void;
}

export function useLatest<T>(): Latest<T> {
  const [rows, setRows] = useState<Numbered<T>[]>([]);
  const number = useRef(0);
  const waiting = useRef<Numbered<T>[]>([]);
  const frame = useRef(0);
  const add = useCallback((row: T) => {
    number.current += 1;
    waiting.current.push({ ...row, number: number.current });
    if (waiting.current.length > KEPT_MAX) waiting.current.shift();
    frame.current ||= requestAnimationFrame(() => {
      frame.current = 0;
      const latest = waiting.current.reverse();
      waiting.current = [];
      setRows((old) => [...latest, ...old].slice(0, KEPT_MAX));
    });
  }, []);
  const clear = useCallback(() => {
    waiting.current = [];
    setRows([]);
  }, []);
  useEffect(() => () => cancelAnimationFrame(frame.current), []);
  return { rows, add, clear };
}
