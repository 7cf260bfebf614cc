// Shown where the server does not know this browser.

import { isAdmitted } from "./api";
import { useWords } from "./i18n";
import { Icon } from "./parts/icon";

export function NoToken() {
  const t = useWords();
  return (
    <section class="gate">
      <span class="empty-icon">
        <Icon name="link" />
      </span>
      <h1>{t.token.title}</h1>
      <p>{t.token.text}</p>
      <p>{t.token.file}</p>
      <pre tabIndex={0}>{`${location.origin}/?token=…`}</pre>
      <button type="button" class="button primary" onClick={() => isAdmitted.set(true)}>
        {t.token.retry}
      </button>
    </section>
  );
}
