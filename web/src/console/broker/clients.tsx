// Who is connected, and whose session waits.

import { useWords, useLanguage } from "../i18n";
import { usePlace } from "../router";
import { count, size, span } from "../show";
import { AddressField, AddressSelect, ClientLink, Connected, ListOf } from "./parts";
import type { Column } from "./parts";
import type { ClientRow } from "./types";
import { useList } from "./use-list";

const FILTERS = ["prefix", "user", "address", "state"] as const;

export function ClientsPage() {
  const t = useWords();
  const language = useLanguage();
  const { query } = usePlace();
  const words = t.broker.clients;
  const filters = Object.fromEntries(
    FILTERS.flatMap((name) => {
      const value = query.get(name) ?? "";
      return value === "" ? [] : [[name, value]];
    }),
  );
  const list = useList<ClientRow>(["clients"], filters, "clients");
  const columns: Column<ClientRow>[] = [
    { name: words.id, cell: ({ client_id: id }) => <ClientLink id={id} /> },
    { name: words.state, cell: ({ connected }) => <Connected is={connected} /> },
    { name: words.user, cell: ({ user }) => user ?? "–" },
    { name: words.address, cell: ({ address }) => address ?? "–", isMinor: true },
    { name: words.version, cell: ({ version }) => version, isMinor: true },
    {
      name: words.for,
      isNumber: true,
      cell: ({ for_s: seconds }) => span(seconds, language),
    },
    { name: words.subscriptions, isNumber: true, cell: (row) => count(row.subscriptions) },
    {
      name: words.queue,
      isNumber: true,
      cell: (row) =>
        row.queue_len === 0 ? "0" : `${count(row.queue_len)} (${size(row.queue_bytes)})`,
    },
    { name: words.inflight, isNumber: true, isMinor: true, cell: (row) => count(row.inflight) },
    { name: words.dropped, isNumber: true, cell: (row) => count(row.dropped) },
  ];
  return (
    <>
      <div class="filters" role="search">
        <AddressField name="prefix" label={words.prefix} value={filters["prefix"] ?? ""} />
        <AddressField name="user" label={words.user} value={filters["user"] ?? ""} />
        <AddressField
          name="address"
          label={words.address}
          value={filters["address"] ?? ""}
          placeholder="192.0.2.0/24"
        />
        <AddressSelect
          name="state"
          label={words.state}
          value={filters["state"] ?? ""}
          options={[
            ["", t.records.any],
            ["connected", t.broker.connected],
            ["away", t.broker.away],
          ]}
        />
        {Object.keys(filters).length > 0 && (
          <a class="button quiet" href="/broker/clients">
            {t.records.clear}
          </a>
        )}
        <span class="filler" />
        <button type="button" class="button" onClick={list.reload}>
          {t.broker.refresh}
        </button>
      </div>
      <section class="card">
        <ListOf
          list={list}
          empty={words.empty}
          label={t.broker.parts.clients}
          columns={columns}
          keyOf={({ client_id: id }) => id}
        />
      </section>
    </>
  );
}
