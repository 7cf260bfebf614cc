// Bans a client identifier, a user, an address or a range.

import { useState } from "preact/hooks";

import { ApiError } from "../api";
import { useLanguage, useWords } from "../i18n";
import { Choice } from "../parts/choice";
import { DangerButtons, Dialog } from "../parts/dialog";
import { Field, TextInput } from "../parts/field";
import { say } from "../parts/toast";
import { errorText } from "../said";
import { seconds } from "../new/draft";
import { act } from "./api";

type Thing = "client_id" | "user" | "address";

const THINGS: Thing[] = ["client_id", "user", "address"];

export function BanDialog({
  given,
  close,
  done,
}: {
  // What is known of a client; empty where a ban is written by hand.
  given: Record<Thing, string>;
  close: () => void;
  done: () => void;
}) {
  const t = useWords();
  const language = useLanguage();
  const words = t.broker.bans;
  const [thing, setThing] = useState<Thing>("client_id");
  const [values, setValues] = useState(given);
  const [time, setTime] = useState("");
  const [reason, setReason] = useState("");
  const [error, setError] = useState<ApiError | null>(null);
  const [isBusy, setBusy] = useState(false);
  const length = time.trim() === "" ? undefined : seconds(time);
  const value = values[thing].trim();
  const ban = async () => {
    setBusy(true);
    setError(null);
    try {
      await act("POST", ["bans"], {}, {
        [thing]: value,
        ...(reason.trim() === "" ? {} : { reason: reason.trim() }),
        ...(length == null ? {} : { for_s: Math.round(length) }),
      });
      say(words.banned(value));
      done();
    } catch (caught) {
      setError(caught instanceof ApiError ? caught : new ApiError(String(caught), 0));
      setBusy(false);
    }
  };
  const wrong = error === null ? undefined : errorText(error, language);
  return (
    <Dialog title={words.add} close={close}>
      <p class="field-help">{words.help}</p>
      <div class="stack">
        <Choice
          legend={words.thing}
          value={thing}
          options={THINGS.map((one) => ({ value: one, label: words.things[one] }))}
          change={setThing}
        />
        <Field label={words.things[thing]} error={wrong} {...(thing === "address" ? { help: words.range } : {})}>
          {(ids) => (
            <TextInput
              ids={ids}
              value={values[thing]}
              change={(text) => setValues({ ...values, [thing]: text })}
            />
          )}
        </Field>
        <Field
          label={words.for}
          help={words.forHelp}
          error={length === null ? t.make.badTime : undefined}
        >
          {(ids) => <TextInput ids={ids} value={time} change={setTime} placeholder="1h" />}
        </Field>
        <Field label={words.reason} help={words.reasonHelp}>
          {(ids) => <TextInput ids={ids} value={reason} change={setReason} />}
        </Field>
      </div>
      <DangerButtons
        label={words.ban}
        isDisabled={isBusy || value === "" || length === null}
        close={close}
        act={() => void ban()}
      />
    </Dialog>
  );
}
