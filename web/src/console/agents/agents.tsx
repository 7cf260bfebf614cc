// The load machines on the bus: state, size, calibration, clock.

import { useEffect } from "preact/hooks";

import { get } from "../api";
import { Table } from "../broker/parts";
import { useWords } from "../i18n";
import { useLoad } from "../load";
import { Empty, Failure, Loading } from "../parts/notice";
import { Chip } from "../parts/verdict";
import { count, size } from "../show";
import { useTitle } from "../title";
import type { Agent } from "../types";
import { clockOf } from "./clock";

// As often as agents tell that they are there.
const EVERY_MS = 2000;

export function AgentsPage() {
  const t = useWords();
  const words = t.agents;
  const { data, error, reload } = useLoad<{ bus: string | null; agents: Agent[] }>(
    "agents",
    (signal) => get(["agents"], null, signal),
    true,
  );
  useTitle(words.title);
  useEffect(() => {
    const timer = setInterval(() => {
      if (document.visibilityState === "visible") reload();
    }, EVERY_MS);
    return () => clearInterval(timer);
  }, [reload]);
  return (
    <>
      <div class="page-head">
        <h1>{words.title}</h1>
        {data?.bus != null && <span class="quiet">{words.on(data.bus)}</span>}
      </div>
      {error && <Failure error={error} retry={reload} />}
      {data === null && !error && <Loading lines={5} />}
      {data !== null && data.bus === null && (
        <Empty icon="link" title={words.noBusTitle} text={words.noBusText} />
      )}
      {data !== null && data.bus !== null && data.agents.length === 0 && (
        <Empty icon="link" title={words.emptyTitle} text={words.emptyText} />
      )}
      {data !== null && data.agents.length > 0 && (
        <section class="card">
          <Agents agents={data.agents} />
        </section>
      )}
    </>
  );
}

function Agents({ agents }: { agents: Agent[] }) {
  const words = useWords().agents;
  return (
    <Table
      label={words.title}
      rows={agents}
      keyOf={({ name }) => name}
      columns={[
        {
          name: words.name,
          cell: ({ name, labels }) => (
            <>
              {name}
              <small class="agent-more">
                {Object.entries(labels)
                  .map(([label, value]) => `${label}=${value}`)
                  .join(", ")}
              </small>
            </>
          ),
        },
        {
          name: words.state,
          cell: ({ run }) =>
            run === null ? (
              <Chip tone="good">{words.free}</Chip>
            ) : (
              <>
                <Chip tone="busy">{words.busy}</Chip>
                <small class="agent-more">{run}</small>
              </>
            ),
        },
        { name: words.threads, isNumber: true, cell: ({ threads }) => count(threads) },
        { name: words.cores, isNumber: true, isMinor: true, cell: ({ cores }) => count(cores) },
        {
          name: words.memory,
          isNumber: true,
          isMinor: true,
          cell: ({ memory_bytes: bytes }) => size(bytes),
        },
        {
          name: words.files,
          isNumber: true,
          isMinor: true,
          cell: ({ descriptors }) => count(descriptors),
        },
        {
          name: words.calibration,
          unit: words.perSecond,
          isNumber: true,
          cell: ({ calibrated_messages_per_s: rate }) =>
            count(rate === null ? null : Math.round(rate)),
        },
        { name: words.clock, isNumber: true, cell: (agent) => clockOf(agent, words) },
        { name: words.version, isMinor: true, cell: ({ version }) => version },
        {
          name: words.addresses,
          isMinor: true,
          cell: ({ addresses }) => <span class="wraps">{addresses.join(", ")}</span>,
        },
      ]}
    />
  );
}
