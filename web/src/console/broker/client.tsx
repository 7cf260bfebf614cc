// One client: its connection, its session, and what it has subscribed to.

import { useState } from "preact/hooks";

import { useLanguage, useWords } from "../i18n";
import { DangerButtons, Dialog } from "../parts/dialog";
import { Icon } from "../parts/icon";
import { Empty, Failure, Loading } from "../parts/notice";
import { say } from "../parts/toast";
import { navigate } from "../router";
import { count, size, span } from "../show";
import { act, useBroker, useMayOperate } from "./api";
import { BanDialog } from "./ban-dialog";
import { Connected, Facts, ListOf } from "./parts";
import { traceAddress } from "./trace";
import type { Client, Subscription } from "./types";
import { useDoing } from "./use-doing";
import { useList } from "./use-list";

export function ClientPage({ id }: { id: string }) {
  const t = useWords();
  const client = useBroker<Client>(["clients", id], {}, true);
  const mayOperate = useMayOperate();
  const [asked, setAsked] = useState<"kick" | "ban" | null>(null);
  const words = t.broker.client;
  const crumbs = (
    <nav class="crumbs" aria-label={t.broker.parts.clients}>
      <a href="/broker/clients">{t.broker.parts.clients}</a>
      <Icon name="right" />
      <span>{id}</span>
    </nav>
  );
  if (client.data === null) {
    if (client.error === null) return <Loading lines={8} />;
    return (
      <>
        {crumbs}
        {client.error.status === 404 ? (
          <Empty icon="info" title={words.missing} text={words.missingText}>
            <a class="button primary" href="/broker/clients">
              {t.broker.parts.clients}
            </a>
          </Empty>
        ) : (
          <Failure error={client.error} retry={client.reload} />
        )}
      </>
    );
  }
  const data = client.data;
  return (
    <>
      {crumbs}
      <div class="run-title client-title">
        <div>
          <h2 class="client-name">{data.client_id}</h2>
          <p class="facts">
            <Connected is={data.connected} />
            {data.bridge && <span class="tag">{words.bridge}</span>}
            <span>MQTT {data.version}</span>
          </p>
        </div>
        <div class="buttons">
          <button type="button" class="button" onClick={client.reload}>
            {t.broker.refresh}
          </button>
          {mayOperate && (
            <>
              <a class="button" href={traceAddress(id)}>
                {t.broker.parts.trace}
              </a>
              <button type="button" class="button danger" onClick={() => setAsked("kick")}>
                {words.kick}
              </button>
              <button type="button" class="button danger" onClick={() => setAsked("ban")}>
                {words.ban}
              </button>
            </>
          )}
        </div>
      </div>
      {client.error && <Failure error={client.error} retry={client.reload} />}
      <Cards client={data} />
      <Subscriptions id={id} />
      {asked === "kick" && (
        <KickDialog
          client={data}
          close={() => setAsked(null)}
          done={(isGone) => {
            setAsked(null);
            if (isGone) navigate("/broker/clients");
            else client.reload();
          }}
        />
      )}
      {asked === "ban" && (
        <BanDialog
          given={{ client_id: id, user: data.user ?? "", address: hostOf(data.address) }}
          close={() => setAsked(null)}
          done={() => {
            setAsked(null);
            client.reload();
          }}
        />
      )}
    </>
  );
}

// An address without its port.
export function hostOf(address: string | null): string {
  return address?.replace(/:\d+$/, "").replace(/^\[|\]$/g, "") ?? "";
}

function Cards({ client }: { client: Client }) {
  const t = useWords();
  const language = useLanguage();
  const words = t.broker.client;
  const time = (seconds: number | null | undefined) => span(seconds ?? null, language);
  const { will, last_connection: last } = client;
  const dropped = Object.entries(client.dropped_by_reason ?? {}).filter(([, times]) => times > 0);
  return (
    <div class="fact-cards">
      <section class="card">
        <h3>{words.connection}</h3>
        <Facts
          rows={[
            [t.broker.clients.address, client.address ?? "–"],
            [words.listener, client.listener ?? "–"],
            [t.broker.clients.user, client.user ?? "–"],
            [client.connected ? words.connectedFor : words.awayFor, time(client.for_s)],
            [words.blocked, `${count(client.blocked_ms)} ms`],
            [words.unsent, size(client.output_bytes)],
          ]}
        />
      </section>
      <section class="card">
        <h3>{words.session}</h3>
        <Facts
          rows={[
            [words.durable, client.durable ? t.words.yes : t.words.no],
            [words.expiry, client.session_expiry_s == null ? words.never : time(client.session_expiry_s)],
            ...(client.session_ends_in_s == null
              ? []
              : ([[words.endsIn, time(client.session_ends_in_s)]] as [string, string][])),
            [t.broker.clients.queue, `${count(client.queue_len)} (${size(client.queue_bytes)})`],
            [words.queueFull, client.queue_full ? t.words.yes : t.words.no],
            [t.broker.clients.inflight, `${count(client.inflight)} / ${count(client.inflight_max)}`],
            [words.unacked, count(client.inbound_unacked)],
            [words.shard, String(client.shard)],
          ]}
        />
      </section>
      <section class="card">
        <h3>{words.will}</h3>
        {will === null ? (
          <p class="quiet">{words.noWill}</p>
        ) : (
          <Facts
            rows={[
              [t.broker.topic, <code>{will.topic}</code>],
              ["QoS", String(will.qos)],
              [words.retain, will.retain ? t.words.yes : t.words.no],
              [t.broker.payload, size(will.payload_bytes)],
              [words.delay, time(will.delay_s)],
            ]}
          />
        )}
        <h3>{words.dropped}</h3>
        {dropped.length === 0 ? (
          <p class="quiet">{words.noneDropped}</p>
        ) : (
          <Facts
            rows={dropped.map(([reason, times]) => [t.broker.reasons[reason] ?? reason, count(times)])}
          />
        )}
        <h3>{words.last}</h3>
        {last === null ? (
          <p class="quiet">{words.noLast}</p>
        ) : (
          <p>
            <span lang="en">{last.reason}</span>{" "}
            <span class="quiet">{words.ended(time(last.ended_s_ago), time(last.duration_s))}</span>
          </p>
        )}
      </section>
    </div>
  );
}

function Subscriptions({ id }: { id: string }) {
  const t = useWords();
  const list = useList<Subscription>(["clients", id, "subscriptions"], {}, "subscriptions", false);
  const words = t.broker.client;
  return (
    <section class="card">
      <h2>{t.broker.clients.subscriptions}</h2>
      <ListOf
        list={list}
        empty={words.noSubscriptions}
        label={t.broker.clients.subscriptions}
        keyOf={({ filter }) => filter}
        columns={[
          {
            name: t.broker.filter,
            cell: ({ filter }) => (
              <a href={`/broker/topics?filter=${encodeURIComponent(filter)}`}>
                <code>{filter}</code>
              </a>
            ),
          },
          { name: "QoS", isNumber: true, cell: ({ qos }) => String(qos) },
          {
            name: words.options,
            cell: ({ no_local: noLocal, retain_as_published: asPublished, subscription_id: number }) =>
              [
                noLocal ? "no local" : "",
                asPublished ? "retain as published" : "",
                number == null ? "" : `id ${number}`,
              ]
                .filter((part) => part !== "")
                .join(", ") || "–",
          },
        ]}
      />
    </section>
  );
}

function KickDialog({
  client,
  close,
  done,
}: {
  client: Client;
  close: () => void;
  done: (isGone: boolean) => void;
}) {
  const t = useWords();
  const words = t.broker.client;
  const [ends, setEnds] = useState(false);
  const [isBusy, begin] = useDoing();
  const kick = async () => {
    const query: Record<string, string> = ends ? { session: "end" } : {};
    const { session_ended: isGone } = await act<{ session_ended: boolean }>(
      "DELETE",
      ["clients", client.client_id],
      query,
    );
    say(isGone ? words.kickedEnded : words.kicked);
    done(isGone);
  };
  return (
    <Dialog title={words.kickTitle(client.client_id)} close={close}>
      <p>{words.kickText}</p>
      <label class="check">
        <input type="checkbox" checked={ends} onChange={() => setEnds(!ends)} />
        <span>{words.endSession}</span>
      </label>
      <DangerButtons
        label={words.kick}
        isDisabled={isBusy}
        close={close}
        act={() => begin(kick)}
      />
    </Dialog>
  );
}
