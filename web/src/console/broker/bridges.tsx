// Bridges to other brokers, and their connections.

import { useState } from "preact/hooks";

import { useLanguage, useWords } from "../i18n";
import { Icon } from "../parts/icon";
import { Empty, Failure, Loading } from "../parts/notice";
import { say } from "../parts/toast";
import { Chip } from "../parts/verdict";
import type { Tone } from "../parts/verdict";
import { count, size, span } from "../show";
import { act, useMayAdminister, useMayOperate } from "./api";
import { BridgeForm } from "./bridge-form";
import { BridgeRemoval } from "./bridge-removal";
import { TrialResult } from "./bridge-trial";
import { Facts, Table } from "./parts";
import type { Bridge, BridgeMode, BridgeState, BridgeTrial } from "./types";
import { useDoing } from "./use-doing";
import { usePolled } from "./use-polled";

const TONES: Record<BridgeState, Tone> = {
  up: "good",
  partly: "warn",
  connecting: "busy",
  down: "bad",
};

function StateChip({ state }: { state: BridgeState }) {
  const t = useWords();
  return <Chip tone={TONES[state] ?? "warn"}>{t.broker.bridges.states[state] ?? state}</Chip>;
}

export function BridgesPage() {
  const t = useWords();
  const words = t.broker.bridges;
  const bridges = usePolled<{ bridges: Bridge[] }>(["bridges"], 5);
  const mayAdminister = useMayAdminister();
  const [isMade, setMade] = useState(false);
  if (bridges.data === null)
    return bridges.error ? (
      <Failure error={bridges.error} retry={bridges.reload} />
    ) : (
      <Loading lines={6} />
    );
  return (
    <>
      {bridges.error && <Failure error={bridges.error} retry={bridges.reload} />}
      {mayAdminister && (
        <div class="filters">
          <span class="filler" />
          <button type="button" class="button" onClick={() => setMade(true)}>
            <Icon name="plus" />
            {words.form.title}
          </button>
        </div>
      )}
      {isMade && (
        <BridgeForm
          close={() => setMade(false)}
          done={() => {
            setMade(false);
            bridges.reload();
          }}
        />
      )}
      {bridges.data.bridges.length === 0 && (
        <Empty icon="link" title={words.emptyTitle} text={words.emptyText} />
      )}
      {bridges.data.bridges.map((bridge) => (
        <BridgeCard
          key={bridge.name}
          bridge={bridge}
          mayAdminister={mayAdminister}
          reload={bridges.reload}
        />
      ))}
    </>
  );
}

function BridgeCard({
  bridge,
  mayAdminister,
  reload,
}: {
  bridge: Bridge;
  mayAdminister: boolean;
  reload: () => void;
}) {
  const t = useWords();
  const language = useLanguage();
  const words = t.broker.bridges;
  const [trial, setTrial] = useState<BridgeTrial | null>(null);
  const [isDoomed, setDoomed] = useState(false);
  const dropped = Object.entries(bridge).flatMap(([name, value]) =>
    name.startsWith("dropped_") && typeof value === "number" && value > 0
      ? [[t.broker.reasons[name.slice("dropped_".length)] ?? name, count(value)] as [string, string]]
      : [],
  );
  return (
    <section class="card bridge">
      <div class="card-head">
        <h2>{bridge.name}</h2>
        <span class="facts">
          {bridge.mode === undefined || bridge.mode === "running" ? (
            <StateChip state={bridge.state} />
          ) : (
            <Chip tone="warn">{words.modes[bridge.mode]}</Chip>
          )}
          <span>{bridge.remote}</span>
          <span>{words.up(bridge.connected, bridge.connections.length)}</span>
        </span>
        <span class="buttons">
          <ModeButtons bridge={bridge} reload={reload} />
          <TestButton bridge={bridge} tested={setTrial} />
          {mayAdminister && bridge.source === "api" && (
            <button
              type="button"
              class="button small danger"
              aria-label={`${words.removal.remove}: ${bridge.name}`}
              onClick={() => setDoomed(true)}
            >
              <Icon name="trash" />
              {words.removal.remove}
            </button>
          )}
        </span>
      </div>
      {trial !== null && <TrialResult trial={trial} />}
      {isDoomed && (
        <BridgeRemoval
          bridge={bridge}
          close={() => setDoomed(false)}
          done={() => {
            setDoomed(false);
            reload();
          }}
        />
      )}
      <Facts
        rows={[
          [words.sent, count(bridge.sent)],
          [words.received, count(bridge.received)],
          [words.waiting, `${count(bridge.buffered_messages)} (${size(bridge.buffered_bytes)})`],
          [t.broker.clients.inflight, count(bridge.inflight)],
          [words.reconnects, count(bridge.reconnects)],
          ...dropped.map(([reason, times]): [string, string] => [words.dropped(reason), times]),
        ]}
      />
      <details class="fold">
        <summary>{words.connections}</summary>
        <Table
          label={`${words.connections}: ${bridge.name}`}
          rows={bridge.connections}
          keyOf={({ connection }) => String(connection)}
          columns={[
            { name: words.number, cell: ({ connection }) => String(connection) },
            { name: t.broker.clients.state, cell: ({ state }) => <StateChip state={state} /> },
            { name: words.since, isNumber: true, cell: (row) => span(row.for_s ?? null, language) },
            { name: words.sent, isNumber: true, cell: (row) => count(row.sent) },
            { name: words.received, isNumber: true, cell: (row) => count(row.received) },
            { name: words.problem, cell: ({ problem }) => <span lang="en">{problem ?? "–"}</span> },
          ]}
        />
      </details>
    </section>
  );
}

// Has the broker connect once as the bridge would.
function TestButton({ bridge, tested }: { bridge: Bridge; tested: (trial: BridgeTrial) => void }) {
  const t = useWords();
  const words = t.broker.bridges.form;
  const mayOperate = useMayOperate();
  const [isBusy, begin] = useDoing();
  if (!mayOperate) return null;
  const test = async () => {
    tested(await act<BridgeTrial>("POST", ["bridges", bridge.name, "test"]));
  };
  return (
    <button
      type="button"
      class="button small"
      disabled={isBusy}
      aria-label={`${words.test}: ${bridge.name}`}
      onClick={() => begin(test)}
    >
      {isBusy ? words.testing : words.test}
    </button>
  );
}

// Pauses a bridge, whose messages wait then, and lets it run again.
function ModeButtons({ bridge, reload }: { bridge: Bridge; reload: () => void }) {
  const t = useWords();
  const words = t.broker.bridges;
  const mayOperate = useMayOperate();
  const [isBusy, begin] = useDoing();
  if (!mayOperate) return null;
  const isRunning = (bridge.mode ?? "running") === "running";
  const mode: BridgeMode = isRunning ? "paused" : "running";
  const change = async () => {
    await act("POST", ["bridges", bridge.name], {}, { mode });
    say(isRunning ? words.paused(bridge.name) : words.runs(bridge.name));
    reload();
  };
  return (
    <button
      type="button"
      class="button small"
      disabled={isBusy}
      aria-label={`${isRunning ? words.pause : words.run}: ${bridge.name}`}
      onClick={() => begin(change)}
    >
      <Icon name={isRunning ? "stop" : "play"} />
      {isRunning ? words.pause : words.run}
    </button>
  );
}
