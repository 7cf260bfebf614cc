// One connection: its state, subscriptions, the form to publish, and its messages.

import { useState } from "preact/hooks";

import { useLanguage, useWords } from "../../i18n";
import { reasonOf, refusalOf } from "../../i18n/mqtt-reasons";
import { filterFault } from "../../mqtt/checks";
import type { Connection, Subscription } from "../../mqtt/connection";
import type { Ending } from "../../mqtt/exchange";
import type { Qos } from "../../mqtt/packets";
import { Complaint } from "../../parts/field";
import { Icon } from "../../parts/icon";
import { Chip } from "../../parts/verdict";
import type { Tone } from "../../parts/verdict";
import { Messages } from "./messages";
import { PublishForm } from "./publish-form";
import { QosSelect } from "./qos-select";
import { useChanges } from "./use-connections";

export function ConnectionCard({
  connection,
  remove,
}: {
  connection: Connection;
  remove: () => void;
}) {
  const t = useWords();
  const words = t.broker.websocket;
  useChanges(connection);
  const { state, ending, wanted, clientId } = connection;
  const name = clientId === "" ? words.unnamed : clientId;
  return (
    <section class="card connection" aria-label={name}>
      <div class="card-head">
        <h2>{name}</h2>
        <span class="facts">
          <StateChip connection={connection} />
          <span class="place">{wanted.address}</span>
          <span>MQTT {wanted.version === 5 ? "5.0" : "3.1.1"}</span>
          {wanted.user !== null && <span>{words.as(wanted.user)}</span>}
        </span>
        <span class="buttons">
          {state === "ended" ? (
            <>
              <button type="button" class="button small" onClick={() => connection.open()}>
                <Icon name="repeat" />
                {words.again}
              </button>
              <button type="button" class="button small" onClick={remove}>
                <Icon name="cross" />
                {words.remove}
              </button>
            </>
          ) : (
            <button type="button" class="button small" onClick={() => connection.close()}>
              <Icon name="stop" />
              {state === "opening" ? t.words.cancel : words.disconnect}
            </button>
          )}
        </span>
      </div>
      {state === "ended" && ending !== null && ending.by !== "user" && (
        <p class="notice bad" role="alert">
          <Icon name="warning" />
          <EndingText ending={ending} connection={connection} />
        </p>
      )}
      {state === "connected" && connection.isSessionPresent && (
        <p class="field-help">{words.present}</p>
      )}
      {connection.wasConnected && (
        <div class="connection-parts">
          <div>
            <Subscriptions connection={connection} />
            <PublishForm connection={connection} />
          </div>
          <Messages connection={connection} />
        </div>
      )}
    </section>
  );
}

function StateChip({ connection }: { connection: Connection }) {
  const t = useWords();
  const tones: Record<Connection["state"], Tone> = {
    opening: "busy",
    connected: "good",
    ended: connection.ending?.by === "user" ? "calm" : "bad",
  };
  return (
    <span role="status">
      <Chip tone={tones[connection.state]}>{t.broker.websocket.states[connection.state]}</Chip>
    </span>
  );
}

function EndingText({ ending, connection }: { ending: Ending; connection: Connection }) {
  const t = useWords();
  const language = useLanguage();
  const words = t.broker.websocket.endings;
  switch (ending.by) {
    case "user":
      return null;
    case "silence":
      return <span>{words.silence}</span>;
    case "network":
      return <span>{ending.wasOpen ? words.broken : words.unreached(location.origin)}</span>;
    case "fault":
      return (
        <span>
          {words.fault} <span lang="en">{ending.text}</span>
        </span>
      );
    case "refusal":
    case "server": {
      const { code, reason, reference } = ending;
      const { version } = connection.wanted;
      const said =
        ending.by === "refusal" ? refusalOf(code, version, language) : reasonOf(code, language);
      return (
        <span>
          {ending.by === "refusal" ? words.refused(said) : words.server(said)}
          {reason !== null && <span lang="en"> {reason}</span>}
          {reference !== null && ` ${words.reference(reference)}`}
        </span>
      );
    }
  }
}

function Subscriptions({ connection }: { connection: Connection }) {
  const t = useWords();
  const words = t.broker.websocket;
  const [filter, setFilter] = useState("");
  const [qos, setQos] = useState<Qos>(1);
  const [said, setSaid] = useState<string | null>(null);
  const fault = filter === "" ? null : filterFault(filter);
  const isConnected = connection.state === "connected";
  const subscribe = () => {
    const hindrance = connection.subscribe(filter, qos);
    setSaid(hindrance === null ? null : words.hindrances[hindrance]);
    if (hindrance === null) setFilter("");
  };
  return (
    <section class="subscribe">
      <h3>{words.subscriptions}</h3>
      <form
        class="subscribe-form"
        onSubmit={(event) => {
          event.preventDefault();
          if (isConnected && filter !== "" && fault === null) subscribe();
        }}
      >
        <label class="inline-field">
          <span>{t.broker.filter}</span>
          <input
            type="text"
            value={filter}
            placeholder="meters/#"
            autocomplete="off"
            spellcheck={false}
            aria-invalid={fault !== null}
            onInput={(event) => setFilter(event.currentTarget.value)}
          />
        </label>
        <QosSelect value={qos} change={setQos} />
        <button
          type="submit"
          class="button"
          disabled={!isConnected || filter === "" || fault !== null}
        >
          {words.subscribe}
        </button>
      </form>
      {(fault !== null || said !== null) && (
        <Complaint>{fault === null ? said : words.topicFaults[fault]}</Complaint>
      )}
      {connection.subscriptions.length === 0 && <p class="quiet">{words.noSubscriptions}</p>}
      <ul class="subscription-list">
        {connection.subscriptions.map((one) => (
          <SubscriptionRow key={one.filter} connection={connection} one={one} />
        ))}
      </ul>
    </section>
  );
}

function SubscriptionRow({ connection, one }: { connection: Connection; one: Subscription }) {
  const t = useWords();
  const language = useLanguage();
  const words = t.broker.websocket;
  const { filter, answer } = one;
  const isRefused = answer !== null && answer.code >= 0x80;
  const isConnected = connection.state === "connected";
  return (
    <li>
      <code>{filter}</code>
      {answer === null && <Chip tone="busy">{words.waits}</Chip>}
      {answer !== null && !isRefused && <Chip tone="good">{`QoS ${answer.code}`}</Chip>}
      {isRefused && (
        <span class="refused">
          {reasonOf(answer.code, language)}
          {answer.reason !== null && <span lang="en"> {answer.reason}</span>}
        </span>
      )}
      <button
        type="button"
        class="icon-button"
        disabled={!isConnected && !isRefused}
        aria-label={`${isRefused ? words.remove : words.unsubscribe}: ${filter}`}
        onClick={() => {
          if (isRefused) connection.forget(filter);
          else connection.unsubscribe(filter);
        }}
      >
        <Icon name="cross" />
      </button>
    </li>
  );
}
