// A link to the run, or its report in one file.

import { useLanguage, useWords } from "../i18n";
import { CopyButton } from "../parts/copy";
import { Dialog } from "../parts/dialog";
import { Icon } from "../parts/icon";
import { runAddress } from "../router";
import type { Run } from "../types";
import { reportAddress } from "./report";

export function Share({ run, close }: { run: Run; close: () => void }) {
  const t = useWords();
  const language = useLanguage();
  const link = `${location.origin}${runAddress(run.id)}`;
  return (
    <Dialog title={t.run.shareTitle} close={close}>
      <div class="stack">
        <div>
          <h3>{t.run.shareLink}</h3>
          <p class="field-help">{t.run.shareLinkHelp}</p>
          <div class="share-link">
            <input type="text" readOnly value={link} aria-label={t.run.shareLink} />
            <CopyButton text={link} />
          </div>
        </div>
        <div>
          <h3>{t.run.shareFile}</h3>
          <p class="field-help">{t.run.shareFileHelp}</p>
          {run.has_report ? (
            <a class="button" href={reportAddress(run, language)} download={`${run.id}.html`}>
              <Icon name="download" />
              {t.run.download}
            </a>
          ) : (
            <p class="quiet">{t.run.noReportYet}</p>
          )}
        </div>
      </div>
    </Dialog>
  );
}
