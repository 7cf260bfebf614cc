// The messages of a connection: the newest first, a bounded number of them.

import { useState } from "preact/hooks";

import { useLanguage, useWords } from "../../i18n";
import { reasonOf } from "../../i18n/mqtt-reasons";
import { shownPayload } from "../../mqtt/checks";
import type { Format } from "../../mqtt/checks";
import type { Connection } from "../../mqtt/connection";
import type { LoggedMessage } from "../../mqtt/message-log";
import { Chip } from "../../parts/verdict";
import { size, timeOfDay } from "../../show";
import { FormatChoice } from "./format-choice";

export function Messages({ connection }: { connection: Connection }) {
  const t = useWords();
  const words = t.broker.websocket;
  const [format, setFormat] = useState<Format>("text");
  const { log } = connection;
  const rows = log.rows();
  return (
    <section class="messages">
      <div class="messages-head">
        <h3>{words.messages}</h3>
        <FormatChoice value={format} change={setFormat} />
        {rows.length > 0 && (
          <button type="button" class="button small" onClick={() => connection.clear()}>
            {t.broker.events.clear}
          </button>
        )}
      </div>
      <p class="quiet">
        {words.counts(log.received, log.sent)}
        {log.dropped > 0 && ` ${words.notKept(log.dropped)}`}
      </p>
      {rows.length > 0 && (
        <ul class="message-list" tabIndex={0} aria-label={words.messages}>
          {rows.map((row) => (
            <Message key={row.number} row={row} format={format} />
          ))}
        </ul>
      )}
    </section>
  );
}

function Message({ row, format }: { row: LoggedMessage; format: Format }) {
  const t = useWords();
  const language = useLanguage();
  const words = t.broker.websocket;
  const { payload, payloadBytes, isOut, answer } = row;
  const isCut = payload.length < payloadBytes;
  const shown = shownPayload(payload, format, isCut);
  const isFailed = answer !== null && answer.code >= 0x80;
  return (
    <li>
      <p class="message-head">
        <Chip tone={isFailed ? "bad" : isOut ? "busy" : "calm"}>
          {isOut ? words.out : words.in}
        </Chip>
        <code>{row.topic}</code>
        <span class="quiet">{timeOfDay(row.timeMs, language)}</span>
        <span class="quiet">QoS {row.qos}</span>
        {row.retain && <span class="tag">{words.retained}</span>}
        {row.dup && <span class="tag">{words.dup}</span>}
        <span class="quiet">{size(payloadBytes)}</span>
        {isOut && row.qos > 0 && (
          <span class={isFailed ? "refused" : "quiet"}>
            {answer === null ? words.unanswered : reasonOf(answer.code, language)}
            {answer?.reason != null && <span lang="en"> {answer.reason}</span>}
          </span>
        )}
      </p>
      {payloadBytes > 0 && (
        <pre>
          {shown.text}
          {isCut && ` … ${words.cut(size(payload.length))}`}
        </pre>
      )}
      {shown.format !== format && payloadBytes > 0 && (
        <p class="field-help">{words.shownAs(words.formats[shown.format])}</p>
      )}
    </li>
  );
}
