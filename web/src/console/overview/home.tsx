// The start page: what runs now, what ran lately, and where to start.

import { useCallback } from "preact/hooks";

import { get } from "../api";
import { useChanges } from "../changes";
import { useWords } from "../i18n";
import { useLoad } from "../load";
import { useIsOperator } from "../machine";
import { Failure, Loading } from "../parts/notice";
import { useTitle } from "../title";
import type { Catalogue, Page, Queue, Row } from "../types";
import { MachineCard } from "./machine-card";
import { NowCard } from "./now-card";
import { Recent } from "./recent";
import { StartCard } from "./start-card";

// Rows of the list of recent runs.
const RECENT = 8;

export function Home() {
  const t = useWords();
  const isOperator = useIsOperator();
  useTitle();
  const queue = useLoad<Queue>("queue", (signal) => get(["queue"], null, signal));
  // A few more than are shown, since those that run or wait are among them.
  const recentQuery = new URLSearchParams({ sort: "-started", limit: String(2 * RECENT) });
  const recent = useLoad<Page>("recent", (signal) => get(["runs"], recentQuery, signal));
  const catalogue = useLoad<Catalogue>("catalogue", (signal) => get(["scenarios"], null, signal));
  useChanges(
    useCallback(
      (change) => {
        if (change.type === "queue") {
          queue.put({ running: change.running, queued: change.queued, held_by: change.held_by });
          return;
        }
        if (change.type === "run") {
          const { row } = change;
          const now = queue.data;
          if (now?.running?.id === row.id && row.state === "running") {
            queue.put({ ...now, running: row });
            return;
          }
          queue.reload();
          if (row.state !== "running" && row.state !== "queued") recent.reload();
          return;
        }
        queue.reload();
        recent.reload();
      },
      [queue.data, queue.put, queue.reload, recent.reload],
    ),
  );
  const error = queue.error ?? recent.error ?? catalogue.error;
  return (
    <>
      <div class="page-head">
        <div>
          <h1>{t.home.title}</h1>
          <p class="lead">{t.home.lead}</p>
        </div>
      </div>
      {error && (
        <Failure
          error={error}
          retry={() => {
            queue.reload();
            recent.reload();
            catalogue.reload();
          }}
        />
      )}
      <div class="home-columns">
        <div class="home-main">
          {(queue.data !== null || !queue.error) && (
            <section class="card" aria-labelledby="home-now">
              <h2 id="home-now">{t.home.now}</h2>
              {queue.data === null ? (
                <Loading lines={2} />
              ) : (
                <NowCard queue={queue.data} changed={queue.reload} />
              )}
            </section>
          )}
          {(recent.data !== null || !recent.error) && (
            <section class="card" aria-labelledby="home-recent">
              <div class="card-head">
                <h2 id="home-recent">{t.home.recent}</h2>
                {(recent.data?.total ?? 0) > 0 && <a href="/runs">{t.home.allRecords}</a>}
              </div>
              {recent.data === null ? (
                <Loading lines={6} />
              ) : (
                <Recent rows={past(recent.data.rows)} />
              )}
            </section>
          )}
        </div>
        <div class="home-side">
          {isOperator && !catalogue.error && (
            <section class="card" aria-labelledby="home-start">
              <h2 id="home-start">{t.home.start}</h2>
              {catalogue.data === null ? (
                <Loading lines={5} />
              ) : (
                <StartCard scenarios={catalogue.data.scenarios} />
              )}
            </section>
          )}
          <MachineCard />
        </div>
      </div>
    </>
  );
}

// The latest runs that are over.
function past(rows: Row[]): Row[] {
  const isOver = ({ state }: Row) => state !== "running" && state !== "queued";
  return rows.filter(isOver).slice(0, RECENT);
}
