// Where to connect, and as which client.

import { useState } from "preact/hooks";

import { useWords } from "../../i18n";
import { useMachine } from "../../machine";
import { isReadable, socketAddress } from "../../mqtt/checks";
import type { Wanted } from "../../mqtt/connection";
import type { Version } from "../../mqtt/packets";
import { seconds } from "../../new/draft";
import { Choice } from "../../parts/choice";
import { Field, PasswordInput, TextInput } from "../../parts/field";
import { Icon } from "../../parts/icon";
import { useBroker } from "../api";
import type { Listener } from "../types";
import { freshClientId, offersOf } from "./address";
import type { Offer } from "./address";

// The choice of an address that is written by hand.
const OTHER = "";

interface Draft {
  // Undefined: nothing is chosen yet.
  offer: string | undefined;
  address: string;
  version: Version;
  clientId: string;
  user: string;
  // Only here, as long as the page is open.
  password: string;
  isCleanStart: boolean;
  expiry: string;
}

const usual = (): Draft => ({
  offer: undefined,
  address: "",
  version: 5,
  clientId: freshClientId(),
  user: "",
  password: "",
  isCleanStart: true,
  expiry: "1h",
});

type Fault = "address" | "clientId" | "password" | "expiry";

// What is to be opened; the fields that are not right where it cannot be.
function wantedOf(draft: Draft, chosen: string): Wanted | Fault[] {
  const { version, clientId, isCleanStart, expiry } = draft;
  const address = socketAddress(chosen === OTHER ? draft.address : chosen);
  const length = version === 5 && !isCleanStart ? seconds(expiry) : 0;
  const faults: Fault[] = [];
  if (address === null) faults.push("address");
  if (version === 4 && !isCleanStart && clientId === "") faults.push("clientId");
  if (version === 4 && draft.user === "" && draft.password !== "") faults.push("password");
  if (length === null || length > 0xffff_ffff) faults.push("expiry");
  if (faults.length > 0 || address === null || length === null) return faults;
  return {
    address,
    version,
    clientId,
    user: draft.user === "" ? null : draft.user,
    password: draft.password === "" ? null : draft.password,
    isCleanStart,
    sessionExpirySeconds: Math.round(length),
  };
}

export function ConnectForm({
  isFull,
  connect,
}: {
  isFull: boolean;
  connect: (wanted: Wanted) => void;
}) {
  const t = useWords();
  const words = t.broker.websocket;
  const machine = useMachine();
  const listeners = useBroker<{ listeners: Listener[] }>(["listeners"]);
  const [draft, setDraft] = useState<Draft>(usual);
  const put = (part: Partial<Draft>) => setDraft((old) => ({ ...old, ...part }));
  const here = { host: location.hostname, origin: location.origin };
  const offers = offersOf(listeners.data?.listeners ?? [], machine?.broker ?? "", here);
  const chosen = draft.offer ?? offers[0]?.address ?? OTHER;
  const wanted = wantedOf(draft, chosen);
  const faults: Fault[] = Array.isArray(wanted) ? wanted : [];
  const errorOf = (fault: Fault) => (faults.includes(fault) ? words.faults[fault] : undefined);
  const submit = () => {
    if (Array.isArray(wanted)) return;
    connect(wanted);
    // The next connection is another client.
    put({ clientId: freshClientId() });
  };
  return (
    <form
      class="connect-form"
      autocomplete="off"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      <div class="field-grid">
        <AddressFields
          offers={offers}
          chosen={chosen}
          address={draft.address}
          error={draft.address === "" ? undefined : errorOf("address")}
          put={put}
        />
        <Field label={words.clientId} help={words.clientIdHelp} error={errorOf("clientId")}>
          {(ids) => (
            <TextInput ids={ids} value={draft.clientId} change={(clientId) => put({ clientId })} />
          )}
        </Field>
        <Choice
          legend={words.version}
          value={draft.version === 5 ? "5.0" : "3.1.1"}
          options={(["5.0", "3.1.1"] as const).map((value) => ({ value, label: `MQTT ${value}` }))}
          change={(value) => put({ version: value === "5.0" ? 5 : 4 })}
        />
        <Field label={words.user} help={words.optional}>
          {(ids) => <TextInput ids={ids} value={draft.user} change={(user) => put({ user })} />}
        </Field>
        <Field label={words.password} help={words.passwordHelp} error={errorOf("password")}>
          {(ids) => (
            <PasswordInput
              ids={ids}
              value={draft.password}
              change={(password) => put({ password })}
            />
          )}
        </Field>
        <div class="field">
          <label class="check">
            <input
              type="checkbox"
              checked={draft.isCleanStart}
              onChange={(event) => put({ isCleanStart: event.currentTarget.checked })}
            />
            <span>{words.cleanStart}</span>
          </label>
          <p class="field-help">{words.cleanStartHelp}</p>
        </div>
        {draft.version === 5 && !draft.isCleanStart && (
          <Field label={words.expiry} help={words.expiryHelp} error={errorOf("expiry")}>
            {(ids) => (
              <TextInput ids={ids} value={draft.expiry} change={(expiry) => put({ expiry })} />
            )}
          </Field>
        )}
      </div>
      <Warnings wanted={wanted} offers={offers} />
      <div class="buttons">
        <button type="submit" class="button primary" disabled={isFull || Array.isArray(wanted)}>
          <Icon name="link" />
          {words.connect}
        </button>
      </div>
    </form>
  );
}

function AddressFields({
  offers,
  chosen,
  address,
  error,
  put,
}: {
  offers: Offer[];
  chosen: string;
  address: string;
  error: string | undefined;
  put: (part: Partial<Draft>) => void;
}) {
  const t = useWords();
  const words = t.broker.websocket;
  return (
    <>
      {offers.length > 0 && (
        <Field label={words.listener}>
          {(ids) => (
            <select
              {...ids}
              value={chosen}
              onChange={(event) => put({ offer: event.currentTarget.value })}
            >
              {offers.map((offer) => (
                <option key={offer.address} value={offer.address}>
                  {offer.address}
                </option>
              ))}
              <option value={OTHER}>{words.other}</option>
            </select>
          )}
        </Field>
      )}
      {chosen === OTHER && (
        <Field
          label={words.address}
          help={offers.length === 0 ? words.noListener : words.addressHelp}
          error={error}
        >
          {(ids) => (
            <TextInput
              ids={ids}
              value={address}
              placeholder="ws://127.0.0.1:8083/mqtt"
              change={(text) => put({ address: text })}
            />
          )}
        </Field>
      )}
    </>
  );
}

// What will not work, or can be read by others.
function Warnings({ wanted, offers }: { wanted: Wanted | Fault[]; offers: Offer[] }) {
  const t = useWords();
  const words = t.broker.websocket;
  if (Array.isArray(wanted)) return null;
  const isClosed = offers.some(
    ({ address, isClosedToPage }) => address === wanted.address && isClosedToPage,
  );
  const isShown = wanted.password !== null && isReadable(wanted.address);
  return (
    <>
      {isClosed && (
        <p class="notice warn">
          <Icon name="warning" />
          <span>{words.closedToPage(location.origin)}</span>
        </p>
      )}
      {isShown && (
        <p class="notice warn">
          <Icon name="warning" />
          <span>{words.readable}</span>
        </p>
      )}
    </>
  );
}
