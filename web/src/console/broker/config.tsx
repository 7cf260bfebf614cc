// The configuration in force, and where the broker listens.

import { useWords } from "../i18n";
import { Failure, Loading } from "../parts/notice";
import { say } from "../parts/toast";
import { query, usePlace } from "../router";
import { count } from "../show";
import { act, useBroker, useMayOperate } from "./api";
import { AddressField, Table } from "./parts";
import type { ConfigValue, Listener } from "./types";
import { useDoing } from "./use-doing";

export function ConfigPage() {
  return (
    <>
      <Listeners />
      <Values />
    </>
  );
}

function Listeners() {
  const t = useWords();
  const words = t.broker.config;
  const listeners = useBroker<{ listeners: Listener[] }>(["listeners"], {}, true);
  return (
    <section class="card">
      <h2>{words.listeners}</h2>
      {listeners.error && <Failure error={listeners.error} retry={listeners.reload} />}
      {listeners.data === null && !listeners.error && <Loading lines={2} />}
      {listeners.data !== null && (
        <Table
          label={words.listeners}
          rows={listeners.data.listeners}
          keyOf={({ address }) => address}
          columns={[
            { name: t.broker.clients.address, cell: ({ address }) => <code>{address}</code> },
            { name: words.transport, cell: ({ transport }) => words.transports[transport] },
            {
              name: words.max,
              isNumber: true,
              cell: ({ connections_max: max }) => (max === null ? words.asBroker : count(max)),
            },
            {
              name: words.users,
              cell: ({ password_file: file, allow_anonymous: isOpen }) =>
                file ?? (isOpen ? words.anonymous : "–"),
            },
          ]}
        />
      )}
    </section>
  );
}

interface Reloaded {
  certificates: string;
  access: string;
  others: string;
}

function Values() {
  const t = useWords();
  const words = t.broker.config;
  const { query: asked } = usePlace();
  const config = useBroker<{ values: ConfigValue[] }>(["config"], {}, true);
  const mayOperate = useMayOperate();
  const [isBusy, begin] = useDoing();
  const wanted = (asked.get("key") ?? "").toLowerCase();
  const isChanged = asked.get("changed") === "1";
  const reload = async () => {
    const answer = await act<Reloaded>("POST", ["reload"]);
    say(`${words.reloaded}: ${answer.certificates}; ${answer.access}`);
    config.reload();
  };
  const rows = (config.data?.values ?? []).filter(
    ({ key, value, source }) =>
      (!isChanged || source !== "default") &&
      (key.toLowerCase().includes(wanted) || value.toLowerCase().includes(wanted)),
  );
  return (
    <section class="card">
      <div class="section-head">
        <h2>{words.title}</h2>
        {mayOperate && (
          <button
            type="button"
            class="button"
            disabled={isBusy}
            title={words.reloadHelp}
            onClick={() => begin(reload)}
          >
            {words.reload}
          </button>
        )}
      </div>
      <div class="filters" role="search">
        <AddressField name="key" label={words.search} value={asked.get("key") ?? ""} />
        <button
          type="button"
          class="button toggle-button"
          aria-pressed={isChanged}
          onClick={() => query({ changed: isChanged ? null : "1" })}
        >
          {words.changed}
        </button>
      </div>
      {config.error && <Failure error={config.error} retry={config.reload} />}
      {config.data === null && !config.error && <Loading lines={8} />}
      {config.data !== null && rows.length === 0 && <p class="quiet">{words.noneFound}</p>}
      {rows.length > 0 && (
        <Table
          label={words.title}
          rows={rows}
          keyOf={({ key }) => key}
          columns={[
            { name: words.key, cell: ({ key }) => <code>{key}</code> },
            { name: words.value, cell: ({ value }) => <code class="config-value">{value}</code> },
            { name: words.source, cell: ({ source }) => words.sources[source] },
          ]}
        />
      )}
      <p class="quiet">{words.noSecrets}</p>
    </section>
  );
}
