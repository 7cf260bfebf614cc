// The broker in a few figures, and how it has been.

import { useRef } from "preact/hooks";

import { thousands } from "../../format";
import { useLanguage, useWords } from "../i18n";
import { Choice } from "../parts/choice";
import { Icon } from "../parts/icon";
import { Failure, Loading } from "../parts/notice";
import { TileRow } from "../parts/tiles";
import type { Tile } from "../parts/tiles";
import { Chip } from "../parts/verdict";
import type { Tone } from "../parts/verdict";
import { query, usePlace } from "../router";
import { count, perSecond, size, span, us } from "../show";
import { useBroker } from "./api";
import { BackupPart } from "./backup";
import { DrainCard, DrainNotice, useDrain } from "./drain";
import { HistoryChart, ratesOf } from "./history-chart";
import { Facts } from "./parts";
import type { Alarms, History, HistorySpan, Journal, Limit, Status } from "./types";
import { usePolled } from "./use-polled";

export function Overview() {
  const status = usePolled<Status>(["status"], 2);
  const { query: asked } = usePlace();
  const over: HistorySpan = asked.get("span") === "day" ? "day" : "hour";
  const history = usePolled<History>(["history"], 10, { span: over });
  const drain = useDrain();
  if (status.data === null) {
    return status.error ? (
      <Failure error={status.error} retry={status.reload} />
    ) : (
      <Loading lines={10} />
    );
  }
  return (
    <>
      {status.error && <Failure error={status.error} retry={status.reload} />}
      <State status={status.data} />
      <DrainNotice drain={drain} />
      <AlarmNotice />
      <Tiles status={status.data} history={history.data} />
      <Charts history={history.data} over={over} />
      <div class="figure-columns">
        <Limits />
        <JournalCard />
      </div>
      <DrainCard drain={drain} />
    </>
  );
}

function State({ status }: { status: Status }) {
  const t = useWords();
  const language = useLanguage();
  const overload = status.overload_level;
  return (
    <p class="facts broker-state">
      {status.problem === null ? (
        <Chip tone="good">{t.broker.healthy}</Chip>
      ) : (
        <Chip tone="bad">{t.broker.unhealthy}</Chip>
      )}
      {overload > 0 && (
        <Chip tone={overload > 2 ? "bad" : "warn"}>{t.broker.overloads[overload] ?? ""}</Chip>
      )}
      {status.problem !== null && <span lang="en">{status.problem}</span>}
      <span>{t.footer.version(status.version)}</span>
      <span>{t.broker.uptime(span(status.uptime_s, language))}</span>
      <span>{t.broker.shards(status.shards)}</span>
    </p>
  );
}

// The alarms that are raised now, each with the way to the rest.
function AlarmNotice() {
  const t = useWords();
  const alarms = usePolled<Alarms>(["alarms"], 10);
  const active = alarms.data?.active ?? [];
  if (active.length === 0) return null;
  return (
    <div class="notice bad" role="alert">
      <Icon name="warning" />
      <div>
        {active.slice(0, 3).map(({ alarm, subject, text }) => (
          <p key={`${alarm} ${subject ?? ""}`}>
            <b>{[t.broker.alarms.names[alarm] ?? alarm, subject ?? ""].join(" ").trim()}</b>:{" "}
            <span lang="en">{text}</span>
          </p>
        ))}
      </div>
      <a class="button small" href="/broker/alarms">
        {t.broker.parts.alarms}
      </a>
    </div>
  );
}

// Messages per second between two answers.
function useRates(status: Status): { in: number | null; out: number | null } {
  const known = useRef<{ status: Status; at: number; in: number | null; out: number | null }>({
    status,
    at: performance.now(),
    in: null,
    out: null,
  });
  const before = known.current;
  if (before.status !== status) {
    const at = performance.now();
    const seconds = (at - before.at) / 1000;
    const rate = (now: number, then: number) =>
      seconds > 0 && now >= then ? (now - then) / seconds : null;
    known.current = {
      status,
      at,
      in: rate(status.messages_in, before.status.messages_in),
      out: rate(status.messages_out, before.status.messages_out),
    };
  }
  return known.current;
}

function Tiles({ status, history }: { status: Status; history: History | null }) {
  const t = useWords();
  const rates = useRates(status);
  const lag = history?.loop_lag_us.at(-1) ?? null;
  const tiles: Tile[] = [
    [count(status.clients_connected), t.broker.tiles.clients],
    [count(status.sessions), t.broker.tiles.sessions],
    [perSecond(rates.in), t.broker.tiles.in],
    [perSecond(rates.out), t.broker.tiles.out],
    [count(status.subscriptions), t.broker.tiles.subscriptions],
    [count(status.retained), t.broker.tiles.retained],
    [count(status.waiting), t.broker.tiles.waiting],
    [size(status.memory_bytes), t.broker.tiles.memory],
    [us(lag), t.broker.tiles.lag, lag !== null && lag > 100_000],
    [
      status.bridges === 0 ? "–" : `${status.bridges_up} / ${status.bridges}`,
      t.broker.tiles.bridges,
      status.bridges_up < status.bridges,
    ],
  ];
  return <TileRow tiles={tiles} />;
}

function Charts({ history, over }: { history: History | null; over: HistorySpan }) {
  const t = useWords();
  const words = t.broker.charts;
  return (
    <section aria-label={words.title}>
      <div class="section-head">
        <h2>{words.title}</h2>
        <Choice
          legend={words.span}
          isLegendHidden
          value={over}
          options={(["hour", "day"] as const).map((value) => ({ value, label: words[value] }))}
          change={(value) => query({ span: value === "hour" ? null : value })}
        />
      </div>
      {history !== null && history.time_ms.length < 2 && <p class="quiet">{words.soon}</p>}
      {history !== null && history.time_ms.length >= 2 && <Figures history={history} />}
    </section>
  );
}

function Figures({ history }: { history: History }) {
  const t = useWords();
  const words = t.broker.charts;
  const { time_ms: times } = history;
  const rate = (counts: number[]) => ratesOf(times, counts);
  const has = (values: number[]) => values.some((value) => value > 0);
  return (
    <div class="charts">
      <HistoryChart
        title={words.messages}
        unit="rate"
        times={times}
        lines={[
          { name: words.in, colour: "c1", values: rate(history.messages_in) },
          { name: words.out, colour: "c2", values: rate(history.messages_out) },
        ]}
      />
      <HistoryChart
        title={words.clients}
        unit="number"
        times={times}
        lines={[
          { name: words.sessions, colour: "c4", values: history.sessions },
          { name: words.connected, colour: "c1", values: history.clients_connected },
        ]}
      />
      <HistoryChart
        title={words.memory}
        unit="bytes"
        times={times}
        lines={[{ name: words.memory, colour: "c1", values: history.memory_bytes }]}
      />
      <HistoryChart
        title={words.lag}
        unit="latency"
        times={times}
        lines={[{ name: words.lag, colour: "c1", values: history.loop_lag_us }]}
      />
      {has(history.waiting) && (
        <HistoryChart
          title={words.waiting}
          unit="number"
          times={times}
          lines={[{ name: words.waiting, colour: "c1", values: history.waiting }]}
        />
      )}
      {has(history.dropped) && (
        <HistoryChart
          title={words.dropped}
          unit="rate"
          times={times}
          lines={[{ name: words.dropped, colour: "c2", values: rate(history.dropped) }]}
        />
      )}
      {has(history.journal_bytes) && (
        <HistoryChart
          title={words.journal}
          unit="bytes"
          times={times}
          lines={[{ name: words.journal, colour: "c3", values: history.journal_bytes }]}
        />
      )}
    </div>
  );
}

function Limits() {
  const t = useWords();
  const limits = usePolled<{ limits: Limit[] }>(["limits"], 10);
  if (limits.data === null) return null;
  return (
    <section class="card">
      <h2>{t.broker.limits}</h2>
      <ul class="limit-list">
        {limits.data.limits.map(({ limit, used, max }) => {
          const isBytes = limit.includes("bytes");
          const shown = (value: number) => (isBytes ? size(value) : thousands(value));
          const share = max > 0 ? used / max : 0;
          return (
            <li key={limit}>
              <span>
                <code>{limit}</code>
                <span class="quiet">
                  {shown(used)} / {shown(max)}
                </span>
              </span>
              <progress
                class={share > 0.9 ? "nearly" : ""}
                max={1}
                value={share}
                aria-label={limit}
              />
            </li>
          );
        })}
      </ul>
    </section>
  );
}

const CONDITIONS: Record<Journal["condition"], Tone> = {
  fine: "good",
  limited: "warn",
  full: "bad",
  failing: "bad",
  displaced: "bad",
};

function JournalCard() {
  const t = useWords();
  const journal = useBroker<Journal>(["journal"], {}, true);
  const words = t.broker.journal;
  return (
    <section class="card">
      <h2>{words.title}</h2>
      {journal.error?.status === 404 && <p class="quiet">{words.none}</p>}
      {journal.error && journal.error.status !== 404 && <Failure error={journal.error} />}
      {journal.data !== null && (
        <>
          <p>
            <Chip tone={CONDITIONS[journal.data.condition] ?? "warn"}>
              {words.conditions[journal.data.condition] ?? journal.data.condition}
            </Chip>
          </p>
          <Facts
            rows={[
              [words.directory, <code>{journal.data.directory ?? "–"}</code>],
              [words.size, size(journal.data.log_bytes)],
              [words.live, size(journal.data.live_bytes)],
              [words.garbage, size(journal.data.garbage_bytes)],
              [words.messages, count(journal.data.live_messages)],
              [words.segments, count(journal.data.segments)],
              [words.commits, count(journal.data.commits)],
              [words.quarantined, count(journal.data.quarantined)],
            ]}
          />
          <BackupPart />
        </>
      )}
    </section>
  );
}
