// Backups of the journal: begun, followed, and where the last one lies.

import { useEffect, useState } from "preact/hooks";

import { ApiError } from "../api";
import { useLanguage, useWords } from "../i18n";
import { Field, TextInput } from "../parts/field";
import { Icon } from "../parts/icon";
import { Chip } from "../parts/verdict";
import type { Tone } from "../parts/verdict";
import { errorText } from "../said";
import { count, size } from "../show";
import { act, useBroker, useMayAdminister } from "./api";
import { Facts } from "./parts";
import type { Backup } from "./types";

const TONES: Record<Backup["phase"], Tone> = {
  none: "calm",
  running: "busy",
  done: "good",
  failed: "bad",
};
// How often a backup under way is asked for, in milliseconds.
const ASKED_MS = 1000;

export function BackupPart() {
  const t = useWords();
  const words = t.broker.backup;
  const backup = useBroker<Backup>(["backup"], {}, true);
  const mayAdminister = useMayAdminister();
  const { data, reload } = backup;
  const isRunning = data?.phase === "running";
  useEffect(() => {
    if (!isRunning) return;
    const timer = setTimeout(reload, ASKED_MS);
    return () => clearTimeout(timer);
  }, [data, isRunning, reload]);
  if (data === null) return null;
  return (
    <div class="backup">
      <h3>{words.title}</h3>
      <p role="status">
        <Chip tone={TONES[data.phase]}>{words.phases[data.phase]}</Chip>
      </p>
      {data.problem != null && <p lang="en">{data.problem}</p>}
      {data.directory != null && (
        <Facts
          rows={[
            [words.directory, <code>{data.directory}</code>],
            ...(data.phase === "done"
              ? ([
                  [words.commit, count(data.commit ?? null)],
                  [words.segments, count(data.segments ?? null)],
                  [words.linked, size(data.linked_bytes)],
                  [words.copied, size(data.copied_bytes)],
                  [words.took, `${count(data.took_ms ?? null)} ms`],
                ] as [string, string][])
              : []),
          ]}
        />
      )}
      {mayAdminister && <BackupForm isRunning={isRunning} begun={backup.put} />}
    </div>
  );
}

function BackupForm({
  isRunning,
  begun,
}: {
  isRunning: boolean;
  begun: (backup: Backup) => void;
}) {
  const t = useWords();
  const language = useLanguage();
  const words = t.broker.backup;
  const [directory, setDirectory] = useState("");
  const [error, setError] = useState<ApiError | null>(null);
  const [isSent, setSent] = useState(false);
  const begin = async () => {
    setSent(true);
    setError(null);
    try {
      begun(await act<Backup>("POST", ["backup"], {}, { directory: directory.trim() }));
    } catch (caught) {
      setError(caught instanceof ApiError ? caught : new ApiError(String(caught), 0));
    } finally {
      setSent(false);
    }
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void begin();
      }}
    >
      <Field
        label={words.where}
        help={words.whereHelp}
        error={error === null ? undefined : errorText(error, language)}
      >
        {(ids) => (
          <TextInput
            ids={ids}
            value={directory}
            placeholder="/var/backups/tacho/monday"
            change={setDirectory}
          />
        )}
      </Field>
      <div class="buttons">
        <button
          type="submit"
          class="button"
          disabled={isSent || isRunning || directory.trim() === ""}
        >
          <Icon name="download" />
          {words.begin}
        </button>
      </div>
    </form>
  );
}
