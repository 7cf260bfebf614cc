// One run: waiting, live, or its record.

import { useCallback, useState } from "preact/hooks";

import { get } from "../api";
import { useChanges } from "../changes";
import { useWords } from "../i18n";
import { useLoad } from "../load";
import { Icon } from "../parts/icon";
import { Empty, Failure, Loading } from "../parts/notice";
import { address, query, usePlace } from "../router";
import { runName } from "../show";
import { useTitle } from "../title";
import type { Run } from "../types";
import { Files } from "./files";
import { Live } from "./live";
import { Report } from "./report";
import { Result } from "./result";
import { RunHead } from "./run-head";
import { Settings } from "./settings";

type Tab = "result" | "course" | "report" | "files" | "settings";

// The table of which the course of an ended run is made.
const SECONDS = "timeseries.csv";

export function RunPage({ id }: { id: string }) {
  const t = useWords();
  const place = usePlace();
  const run = useLoad<Run>(`run ${id}`, (signal) => get(["runs", id], null, signal));
  // A run that was watched until its end keeps its charts.
  const [wasWatched, setWatched] = useState(false);
  useTitle(run.data === null ? "" : runName(run.data), t.records.title);
  useChanges(
    useCallback(
      (change) => {
        if (change.type === "again") run.reload();
        if (change.type !== "run" || change.row.id !== id || run.data === null) return;
        if (change.row.state !== run.data.state) run.reload();
        else run.put({ ...run.data, ...change.row });
      },
      [id, run.data, run.put, run.reload],
    ),
  );

  if (run.data === null) {
    if (run.error?.status === 404) {
      return (
        <Empty icon="info" title={t.errors.missing} text={t.errors.missingHint}>
          <a class="button primary" href="/runs">
            {t.home.allRecords}
          </a>
        </Empty>
      );
    }
    return run.error ? <Failure error={run.error} retry={run.reload} /> : <Loading lines={10} />;
  }
  const data = run.data;
  const isRunning = data.state === "running";
  if (isRunning && !wasWatched) setWatched(true);
  // Of a single run the server tells the course later, too.
  const isRecorded = data.kind === "run" && data.files?.some(({ name }) => name === SECONDS);
  const hasCourse = isRunning || wasWatched || (data.state === "finished" && isRecorded === true);
  const tabs: Tab[] = [
    ...(isRunning ? [] : ["result" as const]),
    ...(hasCourse ? ["course" as const] : []),
    ...(data.has_report ? ["report" as const] : []),
    ...(data.files === undefined ? [] : (["files"] as const)),
    "settings",
  ];
  const asked = place.query.get("tab");
  const tab = tabs.find((one) => one === asked) ?? tabs[0]!;
  const changed = (row: Partial<Run>) => run.put({ ...data, ...row });
  return (
    <>
      <RunHead run={data} changed={changed} reload={run.reload} />
      {run.error && <Failure error={run.error} retry={run.reload} />}
      {data.state === "queued" ? (
        <p class="notice warn">
          <Icon name="clock" />
          <span>{t.run.waiting(data.position ?? 1)}</span>
        </p>
      ) : (
        <nav class="tabs" aria-label={t.run.sections}>
          {tabs.map((one) => (
            <a
              key={one}
              href={address(place.path, { tab: one === tabs[0] ? null : one })}
              {...(one === tab ? { "aria-current": "true" as const } : {})}
              onClick={(event) => {
                event.preventDefault();
                query({ tab: one === tabs[0] ? null : one });
              }}
            >
              {t.run.tabs[one]}
            </a>
          ))}
        </nav>
      )}
      {data.state === "queued" ? (
        <Settings run={data} />
      ) : (
        <>
          {tab === "result" && <Result run={data} />}
          {/* The charts go on while another tab is shown. */}
          {hasCourse && (isRunning || wasWatched || tab === "course") && (
            <div hidden={tab !== "course"}>
              <Live run={data} isShown={tab === "course"} ended={run.reload} />
            </div>
          )}
          {tab === "report" && <Report run={data} />}
          {tab === "files" && <Files run={data} />}
          {tab === "settings" && <Settings run={data} />}
        </>
      )}
    </>
  );
}
