// The connections of the page. They end when it is left.

import { useEffect, useRef, useState } from "preact/hooks";

import { Connection } from "../../mqtt/connection";
import type { Socket, Wanted } from "../../mqtt/connection";

// As many as a viewer follows.
export const CONNECTIONS_MAX = 8;

// The name of MQTT in the handshake (MQTT 5.0, 6).
const SUBPROTOCOL = "mqtt";

const opened = (address: string): Socket => new WebSocket(address, SUBPROTOCOL) as Socket;

export interface Connections {
  all: Connection[];
  isFull: boolean;
  add: (wanted: Wanted) => void;
  remove: (connection: Connection) => void;
}

export function useConnections(): Connections {
  const [all, setAll] = useState<Connection[]>([]);
  const number = useRef(0);
  const latest = useRef(all);
  latest.current = all;
  useEffect(() => () => latest.current.forEach((connection) => connection.close()), []);
  const add = (wanted: Wanted) => {
    number.current += 1;
    const connection = new Connection(number.current, wanted, opened);
    connection.open();
    setAll((old) => [connection, ...old]);
  };
  const remove = (connection: Connection) => {
    connection.close();
    setAll((old) => old.filter((one) => one !== connection));
  };
  return { all, isFull: all.length >= CONNECTIONS_MAX, add, remove };
}

// Draws again when something about the connection has changed.
export function useChanges(connection: Connection): void {
  const [, setTurn] = useState(0);
  useEffect(() => connection.subscribeToChanges(() => setTurn((turn) => turn + 1)), [connection]);
}
