// The title of the browser's tab.

import { useEffect } from "preact/hooks";

export function useTitle(...parts: string[]): void {
  const title = [...parts, "Tacho"].filter((part) => part !== "").join(" · ");
  useEffect(() => {
    document.title = title;
  }, [title]);
}
