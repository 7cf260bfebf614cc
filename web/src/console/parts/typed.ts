// A text that is typed, and sent after a pause in typing. What it is sent to may change it, too.

import { useEffect, useRef, useState } from "preact/hooks";

export function useTyped(
  value: string,
  pauseMs: number,
  send: (typed: string) => void,
): [string, (typed: string) => void] {
  const [typed, setTyped] = useState(value);
  const sent = useRef(value);
  const latest = useRef(send);
  latest.current = send;
  // The way back, or cleared filters.
  useEffect(() => {
    if (value === sent.current) return;
    sent.current = value;
    setTyped(value);
  }, [value]);
  useEffect(() => {
    if (typed === sent.current) return;
    const timer = setTimeout(() => {
      sent.current = typed;
      latest.current(typed);
    }, pauseMs);
    return () => clearTimeout(timer);
  }, [typed, pauseMs]);
  return [typed, setTyped];
}
