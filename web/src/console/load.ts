// Data of the API for components: loading, shown, failed.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";

import { ApiError } from "./api";

export interface Loaded<T> {
  // The latest data; kept while newer are on their way.
  data: T | null;
  error: ApiError | null;
  isLoading: boolean;
  reload: () => void;
  // Replaces the data, after a change whose answer has them.
  put: (data: T) => void;
}

// Loads what `key` names; another key loads again and forgets the data unless `keep` is set.
export function useLoad<T>(
  key: string | null,
  load: (signal: AbortSignal) => Promise<T>,
  keep = false,
): Loaded<T> {
  const [state, setState] = useState<{
    key: string | null;
    data: T | null;
    error: ApiError | null;
  }>({ key: null, data: null, error: null });
  const [turn, setTurn] = useState(0);
  const [isLoading, setLoading] = useState(key !== null);
  const latest = useRef(load);
  latest.current = load;
  useEffect(() => {
    if (key === null) return;
    const abort = new AbortController();
    setLoading(true);
    latest.current(abort.signal).then(
      (data) => {
        if (abort.signal.aborted) return;
        setState({ key, data, error: null });
        setLoading(false);
      },
      (error: unknown) => {
        if (abort.signal.aborted) return;
        const known = error instanceof ApiError ? error : new ApiError(String(error), 0);
        setState((old) => ({ key, data: old.key === key || keep ? old.data : null, error: known }));
        setLoading(false);
      },
    );
    return () => abort.abort();
  }, [key, turn, keep]);
  const reload = useCallback(() => setTurn((number) => number + 1), []);
  const put = useCallback((data: T) => setState({ key, data, error: null }), [key]);
  const isOwn = state.key === key || keep;
  return {
    data: isOwn ? state.data : null,
    error: state.key === key ? state.error : null,
    isLoading: isLoading || state.key !== key,
    reload,
    put,
  };
}
