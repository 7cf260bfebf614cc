// Uploaded files: a plan or scenario file, and its data.

import { useEffect, useRef, useState } from "preact/hooks";

import { ApiError, upload } from "../api";
import { useWords } from "../i18n";
import { Icon } from "../parts/icon";
import { errorText } from "../parts/notice";
import { size } from "../show";
import { useStore } from "../store";
import type { Problem, Upload } from "../types";
import type { Draft } from "./draft";
import { inShort, problemOf } from "./draft";
import { BYTES_MAX, keep, uploads } from "./uploads";
import type { UploadedFile } from "./uploads";

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
  const [failure, setFailure] = useState<string | null>(null);
  const [isOver, setOver] = useState(false);
  const section = useRef<HTMLElement>(null);
  const latest = useRef(draft);
  latest.current = draft;
  useEffect(() => {
    if (isFirst) section.current?.scrollIntoView({ block: "center" });
  }, [isFirst]);

  const take = async (chosen: FileList | null | undefined) => {
    setFailure(null);
    for (const file of [...(chosen ?? [])]) {
      if (file.size > BYTES_MAX) {
        setFailure(t.make.tooLarge(file.name));
        continue;
      }
      setBusy(file.name);
      try {
        const known = await upload<Upload>(file);
        keep({ ...known, size: file.size });
        const { data } = latest.current;
        // Several files may arrive before the form is drawn again.
        const part: Partial<Draft> =
          known.kind === "data"
            ? { data: [...data, known.upload] }
            : { upload: known.upload, scenario: "", variables: {}, virtualUsers: {} };
        latest.current = { ...latest.current, ...part };
        change(part);
      } catch (error) {
        setFailure(
          error instanceof ApiError
            ? `${file.name}: ${errorText(error, t.errors.connection)}`
            : String(error),
        );
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
            {failure}
          </p>
        )}
      </div>
      {used.length > 0 && (
        <ul class="files-used">
          {used.map((file) => (
            <FileRow
              key={file.upload}
              file={file}
              draft={draft}
              change={change}
              problem={problemOf(problems, file.kind === "data" ? `data.${file.upload}` : "upload")}
            />
          ))}
        </ul>
      )}
    </section>
  );
}

function unknown(id: string, isPlan: boolean): UploadedFile {
  return {
    upload: id,
    name: id,
    kind: isPlan ? "plan" : "data",
    variables: [],
    groups: [],
    problems: [],
    size: 0,
  };
}

function FileRow({
  file,
  draft,
  change,
  problem,
}: {
  file: UploadedFile;
  draft: Draft;
  change: (part: Partial<Draft>) => void;
  problem: string | undefined;
}) {
  const t = useWords();
  const isData = file.kind === "data";
  const said = [
    ...(problem === undefined ? [] : [problem]),
    ...file.problems.map(({ message }) => inShort(message)),
  ];
  return (
    <li>
      <div class="file-about">
        <b>{file.name}</b>
        <span class="facts">
          <span>{t.make.fileKinds[file.kind]}</span>
          {file.size > 0 && <span>{size(file.size)}</span>}
        </span>
      </div>
      <button
        type="button"
        class="icon-button"
        aria-label={`${t.words.remove}: ${file.name}`}
        onClick={() =>
          change(
            isData
              ? { data: draft.data.filter((id) => id !== file.upload) }
              : { upload: "", variables: {} },
          )
        }
      >
        <Icon name="cross" />
      </button>
      {said.map((message) => (
        <p key={message} class="field-error">
          <Icon name="warning" />
          {message}
        </p>
      ))}
    </li>
  );
}
