// Who gets a topic and by which filter, and who has subscribed to a filter.

import { useWords } from "../i18n";
import { Failure, Loading } from "../parts/notice";
import { usePlace } from "../router";
import { count } from "../show";
import { useBroker } from "./api";
import { AddressField, ClientLink, Connected, ListOf, Table } from "./parts";
import type { Column } from "./parts";
import type { Receivers, Subscriber } from "./types";
import { useList } from "./use-list";

export function TopicsPage() {
  const t = useWords();
  const { query } = usePlace();
  const words = t.broker.topics;
  const topic = query.get("topic") ?? "";
  const filter = query.get("filter") ?? "";
  return (
    <>
      <section class="card">
        <h2>{words.receivers}</h2>
        <p class="field-help">{words.receiversHelp}</p>
        <AddressField name="topic" label={t.broker.topic} value={topic} placeholder="sensors/1/temperature" />
        {topic !== "" && <WhoGets topic={topic} />}
      </section>
      <section class="card">
        <h2>{words.subscribers}</h2>
        <p class="field-help">{words.subscribersHelp}</p>
        <AddressField name="filter" label={t.broker.filter} value={filter} placeholder="sensors/#" />
        {filter !== "" && <WhoSubscribed filter={filter} />}
      </section>
    </>
  );
}

function useColumns(hasFilter: boolean): Column<Subscriber>[] {
  const t = useWords();
  return [
    { name: t.broker.clients.id, cell: ({ client_id: id }) => <ClientLink id={id} /> },
    { name: t.broker.clients.state, cell: ({ connected }) => <Connected is={connected} /> },
    ...(hasFilter
      ? [{ name: t.broker.filter, cell: ({ filter }: Subscriber) => <code>{filter}</code> }]
      : []),
    { name: "QoS", isNumber: true, cell: ({ qos }) => String(qos) },
  ];
}

function WhoGets({ topic }: { topic: string }) {
  const t = useWords();
  const words = t.broker.topics;
  // Groups and bridges come with the first page.
  const first = useBroker<Receivers>(["receivers"], { topic, limit: "1" });
  const list = useList<Subscriber>(["receivers"], { topic }, "subscribers");
  const columns = useColumns(true);
  if (first.error) return <Failure error={first.error} retry={first.reload} />;
  if (first.data === null) return <Loading lines={3} />;
  const { groups, bridges } = first.data;
  return (
    <div class="answer">
      <h3>{words.clients}</h3>
      <ListOf
        list={list}
        empty={words.noReceivers}
        label={words.clients}
        columns={columns}
        keyOf={({ client_id: id, filter }) => `${id} ${filter}`}
      />
      {groups.length > 0 && (
        <>
          <h3>{words.groups}</h3>
          <Table
            label={words.groups}
            rows={groups}
            keyOf={({ filter }) => filter}
            columns={[
              { name: t.broker.groups.group, cell: ({ filter }) => <code>{filter}</code> },
              { name: t.broker.groups.members, isNumber: true, cell: (row) => count(row.members) },
              {
                name: t.broker.groups.connected,
                isNumber: true,
                cell: (row) => count(row.connected),
              },
              { name: t.broker.groups.waiting, isNumber: true, cell: (row) => count(row.waiting) },
            ]}
          />
        </>
      )}
      {bridges.length > 0 && (
        <>
          <h3>{words.bridges}</h3>
          <p>
            {bridges.map((name) => (
              <a key={name} class="tag" href="/broker/bridges">
                {name}
              </a>
            ))}
          </p>
        </>
      )}
    </div>
  );
}

function WhoSubscribed({ filter }: { filter: string }) {
  const t = useWords();
  const list = useList<Subscriber>(["subscribers"], { filter }, "subscribers");
  const columns = useColumns(false);
  return (
    <div class="answer">
      <ListOf
        list={list}
        empty={t.broker.topics.noSubscribers}
        label={t.broker.topics.subscribers}
        columns={columns}
        keyOf={({ client_id: id }) => id}
      />
    </div>
  );
}
