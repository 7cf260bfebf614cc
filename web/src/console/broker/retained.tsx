// Retained messages: listed by a filter, read, deleted.

import { useState } from "preact/hooks";

import { useLanguage, useWords } from "../i18n";
import { CopyText } from "../parts/copy";
import { DangerButtons, Dialog } from "../parts/dialog";
import { Icon } from "../parts/icon";
import { Failure, Loading } from "../parts/notice";
import { say } from "../parts/toast";
import { usePlace } from "../router";
import { size, span } from "../show";
import { act, useBroker, useMayOperate } from "./api";
import { AddressField, Facts, ListOf } from "./parts";
import type { Retained, RetainedRow } from "./types";
import { useDoing } from "./use-doing";
import { useList } from "./use-list";

// What is to be deleted once that is confirmed.
type Doomed = { topic: string } | { filter: string };

export function RetainedPage() {
  const t = useWords();
  const language = useLanguage();
  const { query } = usePlace();
  const words = t.broker.retained;
  const filter = query.get("filter") ?? "";
  const filters: Record<string, string> = filter === "" ? {} : { filter };
  const list = useList<RetainedRow>(["retained"], filters, "retained");
  const mayOperate = useMayOperate();
  const [shown, setShown] = useState<string | null>(null);
  const [doomed, setDoomed] = useState<Doomed | null>(null);
  return (
    <>
      <div class="filters" role="search">
        <AddressField name="filter" label={t.broker.filter} value={filter} placeholder="#" />
        <span class="filler" />
        <button type="button" class="button" onClick={list.reload}>
          {t.broker.refresh}
        </button>
        {mayOperate && filter !== "" && list.rows.length > 0 && (
          <button type="button" class="button danger" onClick={() => setDoomed({ filter })}>
            <Icon name="trash" />
            {words.deleteAll}
          </button>
        )}
      </div>
      <section class="card">
        <ListOf
          list={list}
          empty={words.empty}
          label={t.broker.parts.retained}
          keyOf={({ topic }) => topic}
          columns={[
            {
              name: t.broker.topic,
              cell: ({ topic }) => (
                <button type="button" class="link-button topic" onClick={() => setShown(topic)}>
                  {topic}
                </button>
              ),
            },
            { name: "QoS", isNumber: true, cell: ({ qos }) => String(qos) },
            { name: t.broker.payload, isNumber: true, cell: (row) => size(row.payload_bytes) },
            { name: words.by, cell: ({ user }) => user ?? "–" },
            {
              name: words.expires,
              isNumber: true,
              cell: ({ expires_in_s: left }) => (left == null ? words.never : span(left, language)),
            },
            ...(mayOperate
              ? [
                  {
                    name: words.delete,
                    isNumber: true,
                    cell: ({ topic }: RetainedRow) => (
                      <button
                        type="button"
                        class="icon-button"
                        aria-label={words.deleteOf(topic)}
                        onClick={() => setDoomed({ topic })}
                      >
                        <Icon name="trash" />
                      </button>
                    ),
                  },
                ]
              : []),
          ]}
        />
      </section>
      {shown !== null && <Message topic={shown} close={() => setShown(null)} />}
      {doomed !== null && (
        <Confirm
          doomed={doomed}
          close={() => setDoomed(null)}
          done={() => {
            setDoomed(null);
            list.reload();
          }}
        />
      )}
    </>
  );
}

function Message({ topic, close }: { topic: string; close: () => void }) {
  const t = useWords();
  const language = useLanguage();
  const message = useBroker<Retained>(["retained", "message"], { topic });
  const words = t.broker.retained;
  const { data } = message;
  return (
    <Dialog title={topic} close={close} wide>
      {message.error && <Failure error={message.error} />}
      {data === null && !message.error && <Loading lines={4} />}
      {data !== null && (
        <div class="stack">
          <Facts
            rows={[
              ["QoS", String(data.qos)],
              [t.broker.payload, size(data.payload_bytes)],
              [words.by, data.user ?? "–"],
              [
                words.expires,
                data.expires_in_s == null ? words.never : span(data.expires_in_s, language),
              ],
              ...(data.content_type == null
                ? []
                : ([[words.contentType, data.content_type]] as [string, string][])),
            ]}
          />
          {data.payload == null ? (
            <CopyText title="base64" text={data.payload_base64} />
          ) : (
            <CopyText title={t.broker.payload} text={data.payload} />
          )}
        </div>
      )}
    </Dialog>
  );
}

function Confirm({ doomed, close, done }: { doomed: Doomed; close: () => void; done: () => void }) {
  const t = useWords();
  const words = t.broker.retained;
  const [isBusy, begin] = useDoing();
  const remove = async () => {
    let deleted = 0;
    // The broker deletes up to a thousand at a time.
    let cursor: string | undefined = "";
    while (cursor !== undefined) {
      const query: Record<string, string> = { ...doomed, ...(cursor === "" ? {} : { cursor }) };
      const answer: { deleted: number; next?: string } = await act("DELETE", ["retained"], query);
      deleted += answer.deleted;
      cursor = answer.next;
    }
    say(words.deleted(deleted));
    done();
  };
  const title =
    "topic" in doomed ? words.deleteTitle(doomed.topic) : words.deleteAllTitle(doomed.filter);
  return (
    <Dialog title={title} close={close}>
      <p>{words.deleteText}</p>
      <DangerButtons
        label={words.delete}
        isDisabled={isBusy}
        close={close}
        act={() => begin(remove)}
      />
    </Dialog>
  );
}
