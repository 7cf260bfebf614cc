// A dialog of the browser: it takes the keyboard, closes with Esc, and gives the keyboard back.

import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";

import { useWords } from "../i18n";
import { Icon } from "./icon";

// The buttons of a dialog that asks before something is lost.
export function DangerButtons({
  keep,
  label,
  isDisabled = false,
  close,
  act,
}: {
  // Instead of "Cancel".
  keep?: string;
  label: string;
  isDisabled?: boolean;
  close: () => void;
  act: () => void;
}) {
  const t = useWords();
  return (
    <div class="buttons end">
      <button type="button" class="button" onClick={close}>
        {keep ?? t.words.cancel}
      </button>
      <button type="button" class="button danger solid" disabled={isDisabled} onClick={act}>
        {label}
      </button>
    </div>
  );
}

export function Dialog({
  title,
  close,
  children,
  wide = false,
}: {
  title: string;
  close: () => void;
  children: ComponentChildren;
  wide?: boolean;
}) {
  const t = useWords();
  const id = useId();
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const shown = dialog.current;
    const before = document.activeElement;
    if (shown !== null && !shown.open) shown.showModal();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={dialog}
      class={wide ? "dialog wide" : "dialog"}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        close();
      }}
      onClick={(event) => {
        // Outside of its content.
        if (event.target === dialog.current) close();
      }}
    >
      <div class="dialog-content">
        <header>
          <h2 id={id}>{title}</h2>
          <button type="button" class="icon-button" aria-label={t.words.close} onClick={close}>
            <Icon name="cross" />
          </button>
        </header>
        {children}
      </div>
    </dialog>
  );
}
