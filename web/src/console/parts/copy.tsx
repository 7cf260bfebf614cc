// Text to copy, with a button that does it.

import { useEffect, useState } from "preact/hooks";

import { useWords } from "../i18n";
import { Icon } from "./icon";

export function CopyButton({ text, label }: { text: string; label?: string }) {
  const t = useWords();
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) return;
    const timer = setTimeout(() => setCopied(false), 2000);
    return () => clearTimeout(timer);
  }, [isCopied]);
  return (
    <button
      type="button"
      class="button small"
      onClick={() => {
        void copied(text).then(setCopied);
      }}
    >
      <Icon name={isCopied ? "check" : "copy"} />
      <span aria-live="polite">{isCopied ? t.words.copied : (label ?? t.words.copy)}</span>
    </button>
  );
}

export function CopyText({ title, text }: { title: string; text: string }) {
  return (
    <div class="copy-text">
      <div class="copy-head">
        <h3>{title}</h3>
        <CopyButton text={text} />
      </div>
      <pre tabIndex={0} aria-label={title}>
        {text}
      </pre>
    </div>
  );
}

// Copies by the clipboard of the browser, or the old way where the page is not on a secure origin.
async function copied(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "hidden-text";
    (document.querySelector("dialog[open]") ?? document.body).append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}
