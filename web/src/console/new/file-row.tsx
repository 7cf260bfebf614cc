// An uploaded file: what it holds, and what it lacks.

import { thousands } from "../../format";
import { useLanguage, useWords } from "../i18n";
import type { Dictionary } from "../i18n";
import { Icon } from "../parts/icon";
import { Chip } from "../parts/verdict";
import { said } from "../said";
import { size } from "../show";
import type { PlanFile, Problem, Table } from "../types";
import type { Draft } from "./draft";
import { inShort, problemOf } from "./draft";
import type { UploadedFile } from "./uploads";

export function FileRow({
  file,
  plan,
  draft,
  change,
  problems,
}: {
  file: UploadedFile;
  plan: UploadedFile | undefined;
  draft: Draft;
  change: (part: Partial<Draft>) => void;
  problems: Problem[];
}) {
  const t = useWords();
  const language = useLanguage();
  const isData = file.kind === "data";
  const needed = isData ? [] : (file.files ?? []);
  const isIncomplete = needed.some(({ is_there: isThere }) => !isThere);
  const problem = problemOf(problems, isData ? `data.${file.upload}` : "upload");
  const sentences = [
    ...(problem === undefined ? [] : [problem]),
    // Of a plan without its data those are named below.
    ...(isIncomplete ? [] : file.problems.map((one) => inShort(said(one, language)))),
  ];
  const use = plan?.files?.find(({ name }) => name === file.name);
  const unreadBy =
    isData && plan?.kind === "plan" && plan.files != null && use === undefined ? plan.name : null;
  return (
    <li>
      <div class="file-about">
        <b>{file.name}</b>
        <span class="facts">
          <span>{t.make.fileKinds[file.kind]}</span>
          {file.size > 0 && <span>{size(file.size)}</span>}
          {isData && <Counts use={use} table={file.table} />}
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
      {needed.length > 0 && (
        <ul class="needed" aria-label={t.make.needs}>
          {needed.map((one) => (
            <Needed key={one.name} file={one} />
          ))}
        </ul>
      )}
      {unreadBy !== null && <p class="field-help">{t.make.notRead(unreadBy)}</p>}
      {sentences.map((message) => (
        <p key={message} class="field-error">
          <Icon name="warning" />
          {message}
        </p>
      ))}
      {file.table !== undefined && file.table.first.length > 0 && (
        <FirstLines name={file.name} table={file.table} />
      )}
    </li>
  );
}

function Needed({ file }: { file: PlanFile }) {
  const t = useWords();
  return (
    <li class={file.is_there ? "" : "missing"}>
      <Chip tone={file.is_there ? "good" : "warn"}>
        {file.is_there ? t.make.there : t.make.missing}
      </Chip>
      <span>
        <b>{file.name}</b> <span class="quiet">{t.make.readBy(file.element, file.line)}</span>
      </span>
    </li>
  );
}

function Counts({ use, table }: { use: PlanFile | undefined; table: Table | undefined }) {
  const t = useWords();
  const columns = use !== undefined && use.columns.length > 0 ? use.columns : table?.columns;
  const counted =
    use?.rows != null
      ? t.make.rowCount(thousands(use.rows))
      : table !== undefined
        ? linesOf(table, t)
        : null;
  return (
    <>
      {counted !== null && <span>{counted}</span>}
      {columns !== undefined && columns.length > 0 && (
        <span>{t.make.columnCount(columns.length, columns.slice(0, 6).join(", "))}</span>
      )}
      {use?.rows_per_machine != null && (
        <span>{t.make.rowsPerMachine(thousands(use.rows_per_machine))}</span>
      )}
    </>
  );
}

export function linesOf(table: Table, t: Dictionary): string {
  const lines = thousands(table.lines);
  return table.is_whole ? t.make.lineCount(lines) : t.make.atLeastLines(lines);
}

function FirstLines({ name, table }: { name: string; table: Table }) {
  const t = useWords();
  return (
    <details class="fold first-lines">
      <summary>
        {t.make.firstLines}
        <span class="hidden-text">: {name}</span>
      </summary>
      <div class="scroll" tabIndex={0} role="region" aria-label={`${t.make.firstLines}: ${name}`}>
        <table class="plain">
          <tbody>
            {table.first.map((cells, line) => (
              <tr key={line}>
                <th scope="row">{line + 1}</th>
                {cells.map((cell, column) => (
                  <td key={column}>{cell}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="field-help">{t.make.firstLinesHelp}</p>
    </details>
  );
}
