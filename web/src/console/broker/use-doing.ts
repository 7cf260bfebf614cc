// Something that a button begins: once at a time, and a failure is told.

import { useState } from "preact/hooks";

import { complain } from "../parts/toast";

// Whether it is under way, and what begins it.
export function useDoing(): [isBusy: boolean, begin: (work: () => Promise<void>) => void] {
  const [isBusy, setBusy] = useState(false);
  const begin = (work: () => Promise<void>) => {
    setBusy(true);
    void work()
      .catch(complain)
      .finally(() => setBusy(false));
  };
  return [isBusy, begin];
}
