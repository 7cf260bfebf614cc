// The report of a run, in a frame of its own origin.

import { useEffect, useState } from "preact/hooks";

import { endpoint } from "../api";
import { useLanguage, useWords } from "../i18n";
import { Icon } from "../parts/icon";
import { Empty } from "../parts/notice";
import { runName } from "../show";
import type { Language } from "../settings";
import type { Run } from "../types";

// The report in the language of the pages.
export function reportAddress(run: Run, language: Language): string {
  return endpoint(["runs", run.id, language === "zh" ? "report.zh.html" : "report.html"]);
}

// True when a policy, such as that of a proxy, keeps pages from having frames.
function useIsFrameRefused(): boolean {
  const [isRefused, setRefused] = useState(false);
  useEffect(() => {
    const refused = (event: SecurityPolicyViolationEvent) => {
      if (event.effectiveDirective === "frame-src") setRefused(true);
    };
    document.addEventListener("securitypolicyviolation", refused);
    return () => document.removeEventListener("securitypolicyviolation", refused);
  }, []);
  return isRefused;
}

export function Report({ run }: { run: Run }) {
  const t = useWords();
  const isRefused = useIsFrameRefused();
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
      {isRefused ? (
        <Empty icon="info" title={t.run.frameRefused}>
          <a class="button primary" href={address} target="_blank">
            {t.run.openReport}
          </a>
        </Empty>
      ) : (
        <iframe
          class="report-frame"
          src={address}
          title={t.run.reportOf(runName(run))}
          key={address}
          sandbox="allow-scripts allow-downloads allow-popups"
        />
      )}
    </section>
  );
}
