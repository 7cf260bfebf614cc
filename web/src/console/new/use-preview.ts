// What a test would do, asked anew after each change.

import { useEffect, useState } from "preact/hooks";

import { ApiError, send } from "../api";
import { useLanguage, useWords } from "../i18n";
import { said } from "../said";
import type { Preview, Problem, Request } from "../types";
import type { Draft } from "./draft";
import { inShort, toRequest } from "./draft";

// A pause in typing after which the server is asked.
const PAUSE_MS = 250;

export interface PreviewState {
  request: Request;
  preview: Preview | null;
  // Of the form and of the server together.
  problems: Problem[];
  error: ApiError | null;
  // The preview is not yet that of the form.
  isStale: boolean;
}

export function usePreview(draft: Draft, isChosen: boolean): PreviewState {
  const t = useWords();
  const language = useLanguage();
  const { request, problems } = toRequest(draft, { time: t.make.badTime, count: t.make.badCount });
  const key = isChosen ? JSON.stringify([request, problems]) : "";
  const [state, setState] = useState<{
    key: string;
    preview: Preview | null;
    error: ApiError | null;
  }>({ key: "", preview: null, error: null });
  useEffect(() => {
    if (key === "") {
      setState({ key, preview: null, error: null });
      return;
    }
    const [body] = JSON.parse(key) as [Request];
    const abort = new AbortController();
    const timer = setTimeout(() => {
      send<Preview>("POST", ["preview"], body, abort.signal).then(
        (preview) => setState({ key, preview, error: null }),
        (error: unknown) => {
          if (abort.signal.aborted) return;
          const known = error instanceof ApiError ? error : new ApiError(String(error), 0);
          setState((old) => ({ key, preview: old.preview, error: known }));
        },
      );
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [key]);
  const { error } = state;
  // A refused request is a problem like any other.
  const refused =
    error !== null && error.status === 400
      ? [
          { field: error.field, message: error.message, message_zh: error.messageZh },
          ...error.problems,
        ]
      : [];
  const told = [...refused, ...(state.preview?.problems ?? [])];
  return {
    request,
    preview: state.preview,
    problems: [
      ...problems,
      ...told.map((one) => ({ field: one.field, message: inShort(said(one, language)) })),
    ],
    error: error !== null && error.status !== 400 ? error : null,
    isStale: state.key !== key,
  };
}
