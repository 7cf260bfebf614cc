// Taking the broker out of service: begun with a form, followed, and taken back.

import { useState } from "preact/hooks";

import { ApiError } from "../api";
import { useLanguage, useWords } from "../i18n";
import type { Loaded } from "../load";
import { seconds } from "../new/draft";
import { DangerButtons, Dialog } from "../parts/dialog";
import { Complaint, Field, TextInput } from "../parts/field";
import { Icon } from "../parts/icon";
import { say } from "../parts/toast";
import { errorText } from "../said";
import { count, span } from "../show";
import { act, useMayOperate } from "./api";
import type { Drain } from "./types";
import { useDoing } from "./use-doing";
import { usePolled } from "./use-polled";

export function useDrain(): Loaded<Drain> {
  return usePolled<Drain>(["drain"], 2);
}

// How far a drain is, while there is one.
export function DrainNotice({ drain }: { drain: Loaded<Drain> }) {
  const mayOperate = useMayOperate();
  if (drain.data === null || drain.data.phase === "off") return null;
  return <UnderWay drain={drain.data} mayOperate={mayOperate} reload={drain.reload} />;
}

// The way to a drain, while there is none.
export function DrainCard({ drain }: { drain: Loaded<Drain> }) {
  const t = useWords();
  const words = t.broker.drain;
  const mayOperate = useMayOperate();
  const [isAsked, setAsked] = useState(false);
  if (!mayOperate || drain.data?.phase !== "off") return null;
  return (
    <section class="card maintenance">
      <h2>{words.title}</h2>
      <p class="field-help">{words.help}</p>
      <div class="buttons">
        <button type="button" class="button danger" onClick={() => setAsked(true)}>
          <Icon name="stop" />
          {words.open}
        </button>
      </div>
      {isAsked && (
        <DrainDialog
          close={() => setAsked(false)}
          done={() => {
            setAsked(false);
            drain.reload();
          }}
        />
      )}
    </section>
  );
}

function UnderWay({
  drain,
  mayOperate,
  reload,
}: {
  drain: Drain;
  mayOperate: boolean;
  reload: () => void;
}) {
  const t = useWords();
  const language = useLanguage();
  const words = t.broker.drain;
  const [isBusy, begin] = useDoing();
  const end = async () => {
    await act("DELETE", ["drain"]);
    say(words.ended);
    reload();
  };
  const { phase, clients_left: left, disconnected, ends, left_s: rest, server_reference: to } = drain;
  return (
    <div class="notice warn drain">
      <Icon name="warning" />
      <div role="status">
        <b>{phase === "off" ? "" : words.phases[phase]}</b>
        <p>
          {words.left(count(left), count(disconnected))}
          {rest != null && ` ${words.deadline(span(rest, language))}`}
          {to != null && ` ${words.to(to)}`} {ends ? words.ends : words.stays}
        </p>
      </div>
      {mayOperate && (
        <button
          type="button"
          class="button small"
          disabled={isBusy}
          onClick={() => begin(end)}
        >
          {words.undo}
        </button>
      )}
    </div>
  );
}

// The fields by which the broker says what is wrong.
type Name = "wait_s" | "rate_per_s" | "deadline_s" | "server_reference";

function DrainDialog({ close, done }: { close: () => void; done: () => void }) {
  const t = useWords();
  const language = useLanguage();
  const words = t.broker.drain;
  const [values, setValues] = useState<Record<Name, string>>({
    wait_s: "10s",
    rate_per_s: "500",
    deadline_s: "5m",
    server_reference: "",
  });
  const [keep, setKeep] = useState(false);
  const [error, setError] = useState<ApiError | null>(null);
  const [isBusy, setBusy] = useState(false);
  const wait = seconds(values.wait_s);
  const deadline = seconds(values.deadline_s);
  const rate = /^\d+$/.test(values.rate_per_s.trim()) ? Number(values.rate_per_s) : null;
  const reference = values.server_reference.trim();
  const faults: Partial<Record<Name, string>> = {
    ...(wait === null ? { wait_s: t.make.badTime } : {}),
    ...(deadline === null ? { deadline_s: t.make.badTime } : {}),
    ...(rate === null ? { rate_per_s: words.badRate } : {}),
  };
  const names = Object.keys(values) as Name[];
  const of = (name: Name) =>
    faults[name] ?? (error?.field === name ? errorText(error, language) : undefined);
  const begin = async () => {
    setBusy(true);
    setError(null);
    try {
      await act("POST", ["drain"], {}, {
        wait_s: Math.round(wait ?? 0),
        deadline_s: Math.round(deadline ?? 0),
        rate_per_s: rate,
        keep,
        ...(reference === "" ? {} : { server_reference: reference }),
      });
      say(words.begun);
      done();
    } catch (caught) {
      setError(caught instanceof ApiError ? caught : new ApiError(String(caught), 0));
      setBusy(false);
    }
  };
  return (
    <Dialog title={words.title} close={close} wide>
      <p>{words.text}</p>
      <div class="field-grid two">
        {names.map((name) => (
          <Field key={name} label={words.fields[name]} help={words.helps[name]} error={of(name)}>
            {(ids) => (
              <TextInput
                ids={ids}
                value={values[name]}
                {...(name === "server_reference" ? { placeholder: "b.example:8883" } : {})}
                change={(text) => setValues({ ...values, [name]: text })}
              />
            )}
          </Field>
        ))}
      </div>
      <label class="check drain-keep">
        <input
          type="checkbox"
          checked={keep}
          onChange={(event) => setKeep(event.currentTarget.checked)}
        />
        <span>{words.keep}</span>
      </label>
      {error !== null && !names.some((name) => name === error.field) && (
        <Complaint>{errorText(error, language)}</Complaint>
      )}
      <DangerButtons
        label={keep ? words.actKeep : words.act}
        isDisabled={isBusy || Object.keys(faults).length > 0}
        close={close}
        act={() => void begin()}
      />
    </Dialog>
  );
}
