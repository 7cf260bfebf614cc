// A trace: the packets of a client or a topic and what is decided about them, live.

import { useEffect, useRef, useState } from "preact/hooks";

import { ApiError } from "../api";
import { useLanguage, useWords } from "../i18n";
import { Icon } from "../parts/icon";
import { Failure } from "../parts/notice";
import { Chip } from "../parts/verdict";
import type { Tone } from "../parts/verdict";
import { usePlace } from "../router";
import { timeOfDay } from "../show";
import { useMayOperate } from "./api";
import { useLatest } from "./latest";
import type { Numbered } from "./latest";
import { AddressField, ClientLink, Table } from "./parts";
import { follow } from "./stream";
import type { BrokerEvent, TraceEntry, TraceKind } from "./types";

const TONES: Record<TraceKind, Tone> = {
  in: "calm",
  out: "calm",
  auth: "busy",
  route: "good",
  queue: "warn",
  hold: "warn",
  drop: "bad",
  end: "bad",
};

// How long a trace runs, in seconds.
const TIMES = ["60", "600", "3600"] as const;
const PAYLOADS = ["off", "text", "hex"] as const;
const NAMES = ["client_id", "user", "address", "topic"] as const;

interface Traced {
  entries: Numbered<TraceEntry>[];
  isRunning: boolean;
  // Why it has ended, or what is missing: sentences of the broker.
  said: string[];
  error: ApiError | null;
  // Another page has taken its connection.
  isDisplaced: boolean;
  start: (wanted: Record<string, string>) => void;
  stop: () => void;
}

function useTrace(): Traced {
  const { rows: entries, add, clear } = useLatest<TraceEntry>();
  const [said, setSaid] = useState<string[]>([]);
  const [error, setError] = useState<ApiError | null>(null);
  const [isRunning, setRunning] = useState(false);
  const [isDisplaced, setDisplaced] = useState(false);
  const running = useRef<AbortController | null>(null);
  const stop = () => {
    running.current?.abort();
    running.current = null;
    setRunning(false);
  };
  useEffect(() => () => running.current?.abort(), []);
  const start = (wanted: Record<string, string>) => {
    stop();
    const own = new AbortController();
    running.current = own;
    clear();
    setSaid([]);
    setError(null);
    setDisplaced(false);
    setRunning(true);
    const take = (entry: TraceEntry | BrokerEvent) => {
      if ("event" in entry) return setDisplaced(entry.event === "displaced");
      if (entry.kind === "ready") return;
      if (entry.kind === "ended" || entry.kind === "missed")
        return setSaid((old) => [...old, entry.text].slice(-5));
      add(entry);
    };
    follow<TraceEntry | BrokerEvent>(["trace"], wanted, own.signal, take)
      .catch((failure: unknown) => {
        if (own.signal.aborted) return;
        setError(failure instanceof ApiError ? failure : new ApiError("", 0));
      })
      .finally(() => {
        if (running.current === own) stop();
      });
  };
  return { entries, isRunning, said, error, isDisplaced, start, stop };
}

export function TracePage() {
  const t = useWords();
  const words = t.broker.trace;
  const { query: asked } = usePlace();
  const mayOperate = useMayOperate();
  const [payload, setPayload] = useState<(typeof PAYLOADS)[number]>("off");
  const [seconds, setSeconds] = useState<(typeof TIMES)[number]>("600");
  const traced = useTrace();
  const given = NAMES.flatMap((name): [string, string][] => {
    const value = asked.get(name) ?? "";
    return value === "" ? [] : [[name, value]];
  });
  if (!mayOperate) return <p class="notice">{words.viewer}</p>;
  const labels: Record<(typeof NAMES)[number], string> = {
    client_id: t.broker.clients.id,
    user: t.broker.clients.user,
    address: words.address,
    topic: t.broker.filter,
  };
  return (
    <>
      <section class="card">
        <p class="field-help">{words.help}</p>
        <div class="trace-form">
          {NAMES.map((name) => (
            <AddressField key={name} name={name} label={labels[name]} value={asked.get(name) ?? ""} />
          ))}
          <Select
            label={t.broker.payload}
            value={payload}
            options={PAYLOADS.map((one) => [one, words.payloads[one]])}
            change={setPayload}
          />
          <Select
            label={words.for}
            value={seconds}
            options={TIMES.map((one) => [one, words.times[one]])}
            change={setSeconds}
          />
        </div>
        <div class="buttons">
          {traced.isRunning ? (
            <button type="button" class="button danger" onClick={traced.stop}>
              <Icon name="stop" />
              {words.stop}
            </button>
          ) : (
            <button
              type="button"
              class="button primary"
              disabled={given.length === 0}
              onClick={() => traced.start({ ...Object.fromEntries(given), payload, seconds })}
            >
              <Icon name="play" />
              {words.start}
            </button>
          )}
          {given.length === 0 && <span class="quiet">{words.nothing}</span>}
          {traced.isRunning && (
            <span class="quiet" role="status">
              {words.running}
            </span>
          )}
        </div>
      </section>
      {traced.error && <Failure error={traced.error} />}
      {traced.isDisplaced && <p class="notice warn">{t.broker.events.displaced}</p>}
      {traced.said.map((text) => (
        <p key={text} class="notice warn" lang="en">
          <Icon name="info" />
          <span>{text}</span>
        </p>
      ))}
      {traced.entries.length > 0 && <Entries entries={traced.entries} />}
      {traced.entries.length === 0 && traced.isRunning && <p class="quiet">{words.quiet}</p>}
    </>
  );
}

function Select<T extends string>({
  label,
  value,
  options,
  change,
}: {
  label: string;
  value: T;
  options: [value: T, text: string][];
  change: (value: T) => void;
}) {
  return (
    <label class="inline-field">
      <span>{label}</span>
      <select value={value} onChange={(event) => change(event.currentTarget.value as T)}>
        {options.map(([one, text]) => (
          <option key={one} value={one}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

function Entries({ entries }: { entries: Numbered<TraceEntry>[] }) {
  const t = useWords();
  const language = useLanguage();
  const words = t.broker.trace;
  return (
    <section class="card">
      <Table
        label={t.broker.parts.trace}
        rows={entries}
        keyOf={({ number }) => String(number)}
        columns={[
          { name: t.broker.events.time, cell: (row) => timeOfDay(row.time_us / 1000, language) },
          {
            name: words.kind,
            cell: ({ kind }) => (
              <Chip tone={TONES[kind as TraceKind] ?? "calm"}>
                {words.kinds[kind as TraceKind] ?? kind}
              </Chip>
            ),
          },
          {
            name: t.broker.clients.id,
            cell: ({ client_id: id }) => (id === undefined ? "–" : <ClientLink id={id} />),
          },
          {
            name: words.said,
            cell: ({ text, payload, payload_cut: isCut }) => (
              <span lang="en">
                {text}
                {payload !== undefined && (
                  <code class="trace-payload">
                    {payload}
                    {isCut ? " …" : ""}
                  </code>
                )}
              </span>
            ),
          },
        ]}
      />
    </section>
  );
}

// A trace of this client, on its page.
export function traceAddress(clientId: string): string {
  return `/broker/trace?client_id=${encodeURIComponent(clientId)}`;
}
