// A message to publish.

import { useState } from "preact/hooks";

import { useWords } from "../../i18n";
import { payloadOf, topicFault } from "../../mqtt/checks";
import type { Format } from "../../mqtt/checks";
import type { Connection } from "../../mqtt/connection";
import type { Qos } from "../../mqtt/packets";
import { Complaint } from "../../parts/field";
import { FormatChoice } from "./format-choice";
import { QosSelect } from "./qos-select";

export function PublishForm({ connection }: { connection: Connection }) {
  const t = useWords();
  const words = t.broker.websocket;
  const [topic, setTopic] = useState("");
  const [qos, setQos] = useState<Qos>(1);
  const [retain, setRetain] = useState(false);
  const [format, setFormat] = useState<Format>("text");
  const [text, setText] = useState("");
  const [said, setSaid] = useState<string | null>(null);
  const fault = topic === "" ? null : topicFault(topic);
  // Nothing is a payload, too: with retain it deletes the message of the topic.
  const payload = text === "" ? new Uint8Array() : payloadOf(text, format);
  const isConnected = connection.state === "connected";
  const wrong =
    (fault === null ? null : words.topicFaults[fault]) ??
    (typeof payload === "string" ? words.payloadFaults[payload] : null);
  const publish = () => {
    if (typeof payload === "string") return;
    const hindrance = connection.publish({ topic, payload, qos, retain });
    setSaid(hindrance === null ? null : words.hindrances[hindrance]);
  };
  return (
    <section>
      <h3>{words.publishTitle}</h3>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          publish();
        }}
      >
        <div class="subscribe-form">
          <label class="inline-field">
            <span>{t.broker.topic}</span>
            <input
              type="text"
              value={topic}
              placeholder="meters/7/set"
              autocomplete="off"
              spellcheck={false}
              aria-invalid={fault !== null}
              onInput={(event) => setTopic(event.currentTarget.value)}
            />
          </label>
          <QosSelect value={qos} change={setQos} />
          <label class="check">
            <input
              type="checkbox"
              checked={retain}
              onChange={(event) => setRetain(event.currentTarget.checked)}
            />
            <span>{words.retain}</span>
          </label>
        </div>
        <FormatChoice value={format} change={setFormat} />
        <textarea
          rows={4}
          value={text}
          spellcheck={false}
          aria-label={t.broker.payload}
          aria-invalid={typeof payload === "string"}
          placeholder={words.examples[format]}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        {(wrong !== null || said !== null) && (
          <Complaint>{wrong ?? said}</Complaint>
        )}
        <div class="buttons">
          <button
            type="submit"
            class="button primary"
            disabled={!isConnected || topic === "" || wrong !== null}
          >
            {words.publish}
          </button>
        </div>
      </form>
    </section>
  );
}
