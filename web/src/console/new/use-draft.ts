// The test that is being configured, kept in the address.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";

import { navigate, usePlace } from "../router";
import type { Draft } from "./draft";
import { fromQuery, toQuery } from "./draft";

// Browsers refuse too many changes of the address in a row.
const WRITE_MS = 350;

export interface DraftState {
  draft: Draft;
  change: (part: Partial<Draft>) => void;
  // Goes to a step of the form, or to all of them on one page.
  go: (step: number, onePage?: boolean) => void;
  step: number;
  isOnePage: boolean;
}

export function useDraft(): DraftState {
  const { path, query } = usePlace();
  const [draft, setDraft] = useState(() => fromQuery(query));
  const latest = useRef(draft);
  latest.current = draft;
  const written = useRef(toQuery(draft).toString());
  const step = Math.min(Math.max(Number(query.get("step") ?? "1") || 1, 1), 3);
  const isOnePage = query.get("all") === "1";

  const addressOf = useCallback((next: Draft, at: number, onePage: boolean) => {
    const parts = toQuery(next);
    written.current = parts.toString();
    if (onePage) parts.set("all", "1");
    else if (at > 1) parts.set("step", String(at));
    const text = parts.toString();
    return text === "" ? "/new" : `/new?${text}`;
  }, []);

  // Another address than the one written here: a link, or the way back.
  useEffect(() => {
    if (path !== "/new" || query.has("from")) return;
    const text = toQuery(fromQuery(query)).toString();
    if (text === written.current) return;
    written.current = text;
    setDraft(fromQuery(query));
  }, [path, query]);

  useEffect(() => {
    if (toQuery(draft).toString() === written.current) return;
    const timer = setTimeout(() => {
      // A step that was gone to has the draft in its address already, and may not be drawn yet.
      if (toQuery(latest.current).toString() === written.current) return;
      navigate(addressOf(latest.current, step, isOnePage), { replace: true });
    }, WRITE_MS);
    return () => clearTimeout(timer);
  }, [draft, step, isOnePage, addressOf]);

  const change = useCallback(
    (part: Partial<Draft>) => setDraft((old) => ({ ...old, ...part })),
    [],
  );
  const go = useCallback(
    (at: number, onePage = false) => {
      navigate(addressOf(latest.current, at, onePage));
      scrollTo(0, 0);
    },
    [addressOf],
  );
  return { draft, change, go, step, isOnePage };
}
