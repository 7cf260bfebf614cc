// A bridge as it is written in the form, and as the broker takes it.

export interface RuleDraft {
  direction: "egress" | "ingress";
  filter: string;
  topic: string;
  qos: "keep" | "0" | "1" | "2";
}

export interface BridgeDraft {
  name: string;
  address: string;
  version: "5" | "3.1.1";
  clientId: string;
  user: string;
  password: string;
  ca: string;
  connections: string;
  rules: RuleDraft[];
}

export const NEW_RULE: RuleDraft = { direction: "egress", filter: "", topic: "", qos: "keep" };

export const NEW_BRIDGE: BridgeDraft = {
  name: "",
  address: "",
  version: "5",
  clientId: "",
  user: "",
  password: "",
  ca: "",
  connections: "1",
  rules: [NEW_RULE],
};

export type BridgeFault = "name" | "address" | "connections" | "rules";

// What is missing or wrong at a glance; the broker judges the rest.
export function faultsOf(draft: BridgeDraft): BridgeFault[] {
  const connections = Number(draft.connections);
  const isCount = /^\d+$/.test(draft.connections.trim()) && connections >= 1 && connections <= 1024;
  const faults: [BridgeFault, boolean][] = [
    ["name", !/^[A-Za-z0-9._-]{1,64}$/.test(draft.name.trim())],
    ["address", !/^mqtts?:\/\/[^/\s]+$/.test(draft.address.trim())],
    ["connections", !isCount],
    ["rules", !draft.rules.some(({ filter }) => filter.trim() !== "")],
  ];
  return faults.filter(([, isWrong]) => isWrong).map(([name]) => name);
}

// The keys of `[[bridges]]`; what is empty is left out.
export function configurationOf(draft: BridgeDraft): Record<string, unknown> {
  const given = (key: string, text: string) => (text.trim() === "" ? {} : { [key]: text.trim() });
  const rules = (wanted: RuleDraft["direction"]) => {
    const all = draft.rules.filter(
      ({ direction, filter }) => direction === wanted && filter.trim() !== "",
    );
    if (all.length === 0) return {};
    const rows = all.map(({ filter, topic, qos }) => ({
      filter: filter.trim(),
      ...given("topic", topic),
      ...(qos === "keep" ? {} : { qos: Number(qos) }),
    }));
    return { [wanted]: rows };
  };
  return {
    name: draft.name.trim(),
    address: draft.address.trim(),
    version: draft.version,
    ...given("client_id", draft.clientId),
    ...given("username", draft.user),
    // A password may begin or end with a space.
    ...(draft.password === "" ? {} : { password: draft.password }),
    ...(draft.ca.trim() === "" ? {} : { tls: { ca: draft.ca.trim() } }),
    ...(Number(draft.connections) === 1 ? {} : { connections: Number(draft.connections) }),
    ...rules("egress"),
    ...rules("ingress"),
  };
}
