// Shared groups: their members, and what waits for them.

import { useWords } from "../i18n";
import { Icon } from "../parts/icon";
import { Failure, Loading } from "../parts/notice";
import { query, usePlace } from "../router";
import { count } from "../show";
import { useBroker } from "./api";
import { ClientLink, Connected, ListOf, Table } from "./parts";
import type { Group, GroupRow } from "./types";
import { useList } from "./use-list";

export function GroupsPage() {
  const t = useWords();
  const words = t.broker.groups;
  const { query: asked } = usePlace();
  const chosen = asked.get("group") ?? "";
  const list = useList<GroupRow>(["groups"], {}, "groups");
  return (
    <>
      <section class="card">
        <ListOf
          list={list}
          empty={words.empty}
          label={t.broker.parts.groups}
          keyOf={({ filter }) => filter}
          columns={[
            {
              name: words.group,
              cell: ({ filter }) => (
                <button
                  type="button"
                  class="link-button topic"
                  onClick={() => query({ group: filter }, { push: true })}
                >
                  {filter}
                </button>
              ),
            },
            { name: words.members, isNumber: true, cell: (row) => count(row.members) },
            { name: words.connected, isNumber: true, cell: (row) => count(row.connected) },
            { name: words.inflight, isNumber: true, cell: (row) => count(row.inflight) },
            { name: words.waiting, isNumber: true, cell: (row) => count(row.waiting) },
            {
              name: words.full,
              cell: (row) => (row.queue_full === true ? t.words.yes : t.words.no),
              isMinor: true,
            },
          ]}
        />
      </section>
      {chosen !== "" && <Members filter={chosen} />}
    </>
  );
}

function Members({ filter }: { filter: string }) {
  const t = useWords();
  const words = t.broker.groups;
  const group = useBroker<Group>(["group"], { filter }, true);
  return (
    <section class="card">
      <div class="section-head">
        <h2>{words.membersOf(filter)}</h2>
        <button type="button" class="button small" onClick={() => query({ group: null })}>
          <Icon name="cross" />
          {t.words.close}
        </button>
      </div>
      {group.error && <Failure error={group.error} retry={group.reload} />}
      {group.data === null && !group.error && <Loading lines={3} />}
      {group.data !== null && (
        <Table
          label={words.membersOf(filter)}
          rows={group.data.member_list}
          keyOf={({ client_id: id }) => id}
          columns={[
            { name: t.broker.clients.id, cell: ({ client_id: id }) => <ClientLink id={id} /> },
            { name: t.broker.clients.state, cell: ({ connected }) => <Connected is={connected} /> },
            { name: "QoS", isNumber: true, cell: ({ qos }) => String(qos) },
            { name: t.broker.clients.inflight, isNumber: true, cell: (row) => count(row.inflight) },
            { name: t.broker.clients.queue, isNumber: true, cell: (row) => count(row.queue_len) },
          ]}
        />
      )}
      {group.data?.cut === true && <p class="quiet">{words.cut}</p>}
    </section>
  );
}
