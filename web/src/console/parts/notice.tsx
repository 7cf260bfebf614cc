// What a page says where it has nothing else to show.

import type { ComponentChildren } from "preact";

import type { ApiError } from "../api";
import { useLanguage, useWords } from "../i18n";
import { Icon } from "./icon";
import type { IconName } from "./icon";
import { errorText } from "../said";

export function Empty({
  icon,
  title,
  text,
  children,
}: {
  icon: IconName;
  title: string;
  text?: string;
  children?: ComponentChildren;
}) {
  return (
    <div class="empty-state">
      <span class="empty-icon">
        <Icon name={icon} />
      </span>
      <h2>{title}</h2>
      {text !== undefined && <p>{text}</p>}
      {children}
    </div>
  );
}

export function Failure({ error, retry }: { error: ApiError; retry?: () => void }) {
  const t = useWords();
  const language = useLanguage();
  return (
    <div class="notice bad" role="alert">
      <Icon name="warning" />
      <div>
        <b>{t.errors.failed}</b>
        <p>{errorText(error, language)}</p>
      </div>
      {retry && (
        <button type="button" class="button" onClick={retry}>
          {t.words.retry}
        </button>
      )}
    </div>
  );
}

// Holds the place of what is being loaded.
export function Loading({ lines = 3 }: { lines?: number }) {
  const t = useWords();
  return (
    <div class="skeleton" role="status">
      <span class="hidden-text">{t.words.loading}</span>
      {Array.from({ length: lines }, (_, index) => (
        <span class="bone" key={index} />
      ))}
    </div>
  );
}
