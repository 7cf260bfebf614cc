// What happens at the broker, as it happens.

import { useEffect, useRef, useState } from "preact/hooks";

import { useLanguage, useWords } from "../i18n";
import { Icon } from "../parts/icon";
import { Chip } from "../parts/verdict";
import type { Tone } from "../parts/verdict";
import { query, usePlace } from "../router";
import { count, timeOfDay } from "../show";
import { eventsAddress } from "./api";
import { useLatest } from "./latest";
import { AddressField, ClientLink, Table } from "./parts";
import type { BrokerEvent } from "./types";

export const KINDS = [
  "connected",
  "disconnected",
  "taken_over",
  "refused",
  "login_refused",
  "dropped",
  "overload",
  "bridge_up",
  "bridge_down",
  "alarm_raised",
  "alarm_ended",
] as const;
type Kind = (typeof KINDS)[number];

const TONES: Record<Kind, Tone> = {
  connected: "good",
  disconnected: "calm",
  taken_over: "warn",
  refused: "bad",
  login_refused: "bad",
  dropped: "warn",
  overload: "bad",
  bridge_up: "good",
  bridge_down: "bad",
  alarm_raised: "bad",
  alarm_ended: "good",
};

type Link = "opening" | "open" | "lost" | "displaced";

// The latest events of these kinds, the newest first.
function useEvents(filters: Record<string, string>, isPaused: boolean) {
  const { rows: events, add, clear } = useLatest<BrokerEvent>();
  const [link, setLink] = useState<Link>("opening");
  const [missed, setMissed] = useState(0);
  const paused = useRef(isPaused);
  paused.current = isPaused;
  const key = JSON.stringify(filters);
  useEffect(() => {
    clear();
    setMissed(0);
    setLink("opening");
    const source = new EventSource(eventsAddress(JSON.parse(key) as Record<string, string>));
    source.onmessage = ({ data }: MessageEvent<string>) => {
      const event = JSON.parse(data) as BrokerEvent;
      if (event.event === "ready") return setLink("open");
      if (event.event === "displaced") {
        source.close();
        return setLink("displaced");
      }
      if (event.event === "missed") return setMissed((old) => old + (event.count ?? 0));
      if (!paused.current) add(event);
    };
    source.onerror = () => setLink("lost");
    return () => source.close();
  }, [key, add, clear]);
  return { events, link, missed, clear };
}

export function EventsPage() {
  const t = useWords();
  const language = useLanguage();
  const words = t.broker.events;
  const { query: asked } = usePlace();
  const kinds = (asked.get("events") ?? "").split(",").filter((kind) => kind !== "");
  const prefix = asked.get("prefix") ?? "";
  const filters: Record<string, string> = {
    ...(kinds.length === 0 ? {} : { events: kinds.join(",") }),
    ...(prefix === "" ? {} : { prefix }),
  };
  const [isPaused, setPaused] = useState(false);
  const { events, link, missed, clear } = useEvents(filters, isPaused);
  const toggle = (kind: Kind) => {
    const next = kinds.includes(kind) ? kinds.filter((one) => one !== kind) : [...kinds, kind];
    query({ events: next.join(",") });
  };
  return (
    <>
      <div class="filters" role="search">
        <AddressField name="prefix" label={t.broker.clients.prefix} value={prefix} />
        <span class="filler" />
        <button
          type="button"
          class="button toggle-button"
          aria-pressed={isPaused}
          onClick={() => setPaused(!isPaused)}
        >
          <Icon name={isPaused ? "play" : "stop"} />
          {words.pause}
        </button>
        <button type="button" class="button" onClick={clear}>
          {words.clear}
        </button>
      </div>
      <div class="kinds" role="group" aria-label={words.kinds}>
        {KINDS.map((kind) => (
          <button
            key={kind}
            type="button"
            class="button small toggle-button"
            aria-pressed={kinds.includes(kind)}
            onClick={() => toggle(kind)}
          >
            {words.names[kind]}
          </button>
        ))}
      </div>
      {link !== "open" && link !== "opening" && (
        <p class="notice warn" role="status">
          <Icon name="warning" />
          <span>{words[link]}</span>
        </p>
      )}
      {missed > 0 && (
        <p class="notice warn">
          <Icon name="info" />
          <span>{words.missed(missed)}</span>
        </p>
      )}
      <section class="card">
        {events.length === 0 && (
          <p class="quiet">{link === "open" ? words.quiet : words.opening}</p>
        )}
        {events.length > 0 && (
          <Table
            label={t.broker.parts.events}
            rows={events}
            keyOf={({ number }) => String(number)}
            columns={[
              { name: words.time, cell: ({ time_ms: at }) => timeOfDay(at ?? null, language) },
              { name: words.event, cell: ({ event }) => <EventChip event={event} /> },
              {
                name: t.broker.clients.id,
                cell: ({ client_id: id, bridge, alarm }) =>
                  id !== undefined ? <ClientLink id={id} /> : (bridge ?? alarm ?? "–"),
              },
              { name: t.broker.clients.user, cell: ({ user }) => user ?? "–", isMinor: true },
              { name: t.broker.clients.address, cell: ({ address }) => address ?? "–", isMinor: true },
              {
                name: words.reason,
                cell: ({ reason, count: times }) => (
                  <span lang="en">
                    {[reason, times === undefined ? "" : count(times)]
                      .filter((part) => part !== undefined && part !== "")
                      .join(": ") || "–"}
                  </span>
                ),
              },
            ]}
          />
        )}
      </section>
    </>
  );
}

function EventChip({ event }: { event: string }) {
  const t = useWords();
  const kind = KINDS.find((one) => one === event);
  return (
    <Chip tone={kind === undefined ? "calm" : TONES[kind]}>
      {kind === undefined ? event : t.broker.events.names[kind]}
    </Chip>
  );
}
