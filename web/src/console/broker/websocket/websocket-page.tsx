// A client in the browser: publishes and subscribes by WebSocket, with several connections.

import { useState } from "preact/hooks";

import { useWords } from "../../i18n";
import { ConnectForm } from "./connect-form";
import { ConnectionCard } from "./connection-card";
import { CONNECTIONS_MAX, useConnections } from "./use-connections";

export function WebSocketPage() {
  const t = useWords();
  const words = t.broker.websocket;
  const { all, isFull, add, remove } = useConnections();
  const [isOpen, setOpen] = useState(true);
  return (
    <>
      <details
        class="card connect"
        open={isOpen}
        onToggle={(event) => setOpen(event.currentTarget.open)}
      >
        <summary>
          <h2>{words.new}</h2>
        </summary>
        <p class="field-help">{words.help}</p>
        <ConnectForm
          isFull={isFull}
          connect={(wanted) => {
            add(wanted);
            setOpen(false);
          }}
        />
        {isFull && <p class="quiet">{words.full(CONNECTIONS_MAX)}</p>}
      </details>
      {all.map((connection) => (
        <ConnectionCard
          key={connection.number}
          connection={connection}
          remove={() => remove(connection)}
        />
      ))}
    </>
  );
}
