// The report of a run, in a frame of its own origin.

import { endpoint } from "../api";
import { useLanguage, useWords } from "../i18n";
import { Icon } from "../parts/icon";
import { runName } from "../show";
import type { Language } from "../settings";
import type { Run } from "../types";

// The Chinese report where there is one.
export function reportAddress(run: Run, language: Language): string {
  const hasChinese = run.files?.some(({ name }) => name === "report.zh.html") ?? false;
  const name = language === "zh" && hasChinese ? "report.zh.html" : "report.html";
  return endpoint(["runs", run.id, name]);
}

export function Report({ run }: { run: Run }) {
  const t = useWords();
  const address = reportAddress(run, useLanguage());
  return (
    <section class="report" aria-label={t.run.tabs.report}>
      <div class="buttons end">
        <a class="button" href={address} target="_blank">
          <Icon name="link" />
          {t.run.openReport}
        </a>
        <a class="button" href={address} download={`${run.id}.html`}>
          <Icon name="download" />
          {t.run.download}
        </a>
      </div>
      <iframe
        class="report-frame"
        src={address}
        title={t.run.reportOf(runName(run))}
        key={address}
        sandbox="allow-scripts allow-downloads allow-popups"
      />
    </section>
  );
}
