// Uploaded files: a plan or scenario file, and its data.

import { useEffect, useRef, useState } from "preact/hooks";

import { ApiError, send, upload } from "../api";
import { useLanguage, useWords } from "../i18n";
import { Icon } from "../parts/icon";
import { errorText } from "../said";
import { useStore } from "../store";
import type { Problem, Upload } from "../types";
import type { Draft } from "./draft";
import { FileRow } from "./file-row";
import { BYTES_MAX, keep, uploads } from "./uploads";
import type { UploadedFile } from "./uploads";

// Why a file, or a plan with its data, was not taken.
interface UploadFailure {
  file: string | null;
  error: unknown;
}

export function Files({
  draft,
  change,
  problems,
  isFirst,
}: {
  draft: Draft;
  change: (part: Partial<Draft>) => void;
  problems: Problem[];
  isFirst: boolean;
}) {
  const t = useWords();
  const files = useStore(uploads);
  const [busy, setBusy] = useState<string | null>(null);
  const language = useLanguage();
  const [failure, setFailure] = useState<UploadFailure | null>(null);
  const [isOver, setOver] = useState(false);
  const section = useRef<HTMLElement>(null);
  const latest = useRef(draft);
  latest.current = draft;
  useEffect(() => {
    if (isFirst) section.current?.scrollIntoView({ block: "center" });
  }, [isFirst]);
  const plan = files.find(({ upload: id }) => id === draft.upload);
  usePlanWithData(plan, draft.data, setFailure);

  const failureText = ({ file, error }: UploadFailure) => {
    if (file !== null && error === "too large") return t.make.tooLarge(file);
    const why = error instanceof ApiError ? errorText(error, language) : String(error);
    return file === null ? why : `${file}: ${why}`;
  };
  const take = async (chosen: FileList | null | undefined) => {
    setFailure(null);
    for (const file of [...(chosen ?? [])]) {
      if (file.size > BYTES_MAX) {
        setFailure({ file: file.name, error: "too large" });
        continue;
      }
      setBusy(file.name);
      try {
        const known = await upload<Upload>(file);
        keep({ ...known, size: file.size });
        // Several files may arrive before the form is drawn again.
        const part = withUpload(latest.current, known);
        latest.current = { ...latest.current, ...part };
        change(part);
      } catch (error) {
        setFailure({ file: file.name, error });
      }
    }
    setBusy(null);
  };
  const used = [draft.upload, ...draft.data].flatMap((id) =>
    id === ""
      ? []
      : [files.find(({ upload: one }) => one === id) ?? unknown(id, id === draft.upload)],
  );
  return (
    <section class="card" ref={section} data-field="upload">
      <h2>{t.make.byFile}</h2>
      <label
        class={isOver ? "drop over" : "drop"}
        data-field="data"
        onDragOver={(event) => {
          event.preventDefault();
          setOver(true);
        }}
        onDragLeave={() => setOver(false)}
        onDrop={(event) => {
          event.preventDefault();
          setOver(false);
          void take(event.dataTransfer?.files);
        }}
      >
        <Icon name="upload" />
        <span>{t.make.drop}</span>
        <span class="button small">{t.make.choose}</span>
        <input
          type="file"
          multiple
          accept=".jmx,.toml,.csv,.txt"
          onChange={(event) => {
            const input = event.currentTarget;
            void take(input.files).then(() => {
              input.value = "";
            });
          }}
        />
      </label>
      <p class="field-help">{t.make.byFileHelp}</p>
      <div role="status">
        {busy !== null && <p class="quiet">{t.make.uploading(busy)}</p>}
        {failure !== null && (
          <p class="field-error">
            <Icon name="warning" />
            {failureText(failure)}
          </p>
        )}
      </div>
      {used.length > 0 && (
        <ul class="files-used">
          {used.map((file) => (
            <FileRow
              key={file.upload}
              file={file}
              plan={plan}
              draft={draft}
              change={change}
              problems={problems}
            />
          ))}
        </ul>
      )}
    </section>
  );
}

// What a file that was uploaded changes in the form; one of data replaces another of its name.
export function withUpload(draft: Draft, { kind, upload: id, name }: Upload): Partial<Draft> {
  if (kind !== "data") return { upload: id, scenario: "", variables: {}, virtualUsers: {} };
  const known = uploads.get();
  const others = draft.data.filter(
    (other) => known.find(({ upload: one }) => one === other)?.name !== name,
  );
  return { data: [...others, id] };
}

// Asks the server about a plan or scenario file again when other data are beside it.
function usePlanWithData(
  plan: UploadedFile | undefined,
  data: string[],
  complain: (failure: UploadFailure) => void,
): void {
  const id = plan === undefined || plan.kind === "data" ? "" : plan.upload;
  const key = id === "" ? "" : [id, ...data].join();
  const asked = useRef("");
  useEffect(() => {
    // The answer to its upload is that without data.
    if (key === "" || key === asked.current || (asked.current === "" && key === id)) return;
    asked.current = key;
    const abort = new AbortController();
    const wanted = key.split(",").slice(1);
    send<Upload>("POST", ["uploads", id, "inspect"], { data: wanted }, abort.signal).then(
      (answer) => {
        const known = uploads.get().find(({ upload: one }) => one === id);
        if (known !== undefined) keep({ ...known, ...answer });
      },
      (error: unknown) => {
        if (abort.signal.aborted) return;
        complain({ file: null, error });
      },
    );
    return () => {
      abort.abort();
      asked.current = "?";
    };
  }, [key, id, complain]);
}

function unknown(id: string, isPlan: boolean): UploadedFile {
  return { upload: id, name: id, kind: isPlan ? "plan" : "data", problems: [], size: 0 };
}
