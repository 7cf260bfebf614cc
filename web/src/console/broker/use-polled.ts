// Data of the broker that are asked for again and again while the page is seen.

import { useEffect } from "preact/hooks";

import type { Loaded } from "../load";
import { useBroker } from "./api";

export function usePolled<T>(
  pieces: string[],
  everySeconds: number,
  query: Record<string, string> = {},
): Loaded<T> {
  const loaded = useBroker<T>(pieces, query, true);
  const { reload } = loaded;
  useEffect(() => {
    const timer = setInterval(() => {
      if (document.visibilityState === "visible") reload();
    }, everySeconds * 1000);
    return () => clearInterval(timer);
  }, [reload, everySeconds]);
  return loaded;
}
