// How a run was made: its command line, its scenario, the request of the console.

import { useWords } from "../i18n";
import { CopyText } from "../parts/copy";
import { Empty } from "../parts/notice";
import type { Run } from "../types";

export function Settings({ run }: { run: Run }) {
  const t = useWords();
  const toml = run.scenario_toml ?? null;
  if (run.command_line === null && toml === null && run.request === null) {
    return <Empty icon="info" title={t.run.noSettings} />;
  }
  return (
    <section class="card">
      {run.command_line !== null && <CopyText title={t.run.commandLine} text={run.command_line} />}
      {toml !== null && <CopyText title={t.run.scenarioFile} text={toml} />}
      {run.request !== null && (
        <CopyText title={t.run.request} text={JSON.stringify(run.request, null, 2)} />
      )}
    </section>
  );
}
