// Short messages at the lower edge, with a way to take the step back.

import { useEffect } from "preact/hooks";

import { ApiError } from "../api";
import { useWords, wordsOf } from "../i18n";
import { errorText } from "../said";
import { settings } from "../settings";
import { Store, useStore } from "../store";
import { Icon } from "./icon";

interface Message {
  number: number;
  text: string;
  isBad: boolean;
  undo?: () => void;
}

// A message stays this long; one that can be undone twice as long.
const SHOWN_MS = 6000;

const message = new Store<Message | null>(null);
let number = 0;

export function say(text: string, undo?: () => void): void {
  number += 1;
  message.set({ number, text, isBad: false, ...(undo ? { undo } : {}) });
}

// Says why something did not work.
export function complain(error: unknown): void {
  if (error instanceof ApiError && error.status === 401) return;
  const { language } = settings.get();
  const { errors } = wordsOf(language);
  const why = error instanceof ApiError ? errorText(error, language) : String(error);
  number += 1;
  message.set({ number, text: `${errors.failed}: ${why}`, isBad: true });
}

export function Toasts() {
  const t = useWords();
  const shown = useStore(message);
  useEffect(() => {
    if (shown === null) return;
    const timer = setTimeout(
      () => message.set(null),
      SHOWN_MS * (shown.undo || shown.isBad ? 2 : 1),
    );
    return () => clearTimeout(timer);
  }, [shown]);
  return (
    <div class="toasts" role="status" aria-live="polite">
      {shown !== null && (
        <div class={shown.isBad ? "toast bad" : "toast"} key={shown.number}>
          <span>{shown.text}</span>
          {shown.undo && (
            <button
              type="button"
              class="button quiet"
              onClick={() => {
                shown.undo?.();
                message.set(null);
              }}
            >
              {t.words.undo}
            </button>
          )}
          <button
            type="button"
            class="icon-button"
            aria-label={t.words.close}
            onClick={() => message.set(null)}
          >
            <Icon name="cross" />
          </button>
        </div>
      )}
    </div>
  );
}
