// The files of a run, and of its steps.

import { endpoint } from "../api";
import { useWords } from "../i18n";
import { Icon } from "../parts/icon";
import { Empty } from "../parts/notice";
import { size } from "../show";
import type { Run, RunFile } from "../types";

export function Files({ run }: { run: Run }) {
  const t = useWords();
  const folders = foldersOf(run.files ?? []);
  const own = folders.get("") ?? [];
  folders.delete("");
  if (own.length === 0 && folders.size === 0)
    return <Empty icon="info" title={t.run.noFiles} text={t.run.filesNotListed} />;
  return (
    <section class="card files">
      {own.length > 0 && <Table id={run.id} files={own} caption={t.run.tabs.files} />}
      {[...folders].map(([folder, files]) => (
        <details key={folder}>
          <summary>
            <b>{folder}</b> <span class="quiet">{t.run.filesIn(files.length)}</span>
          </summary>
          <Table id={run.id} files={files} caption={folder} />
        </details>
      ))}
      <p class="quiet">
        {run.files_cut === true ? `${t.run.filesCut} ` : ""}
        {t.run.filesNotListed}
      </p>
    </section>
  );
}

// Files by the directory that they are in, in the order of the server.
export function foldersOf(files: RunFile[]): Map<string, RunFile[]> {
  const folders = new Map<string, RunFile[]>();
  for (const file of files) {
    const folder = file.name.slice(0, Math.max(file.name.lastIndexOf("/"), 0));
    const known = folders.get(folder);
    if (known === undefined) folders.set(folder, [file]);
    else known.push(file);
  }
  return folders;
}

function Table({ id, files, caption }: { id: string; files: RunFile[]; caption: string }) {
  const t = useWords();
  return (
    <table class="plain">
      <caption class="hidden-text">{caption}</caption>
      <thead>
        <tr>
          <th scope="col">{t.run.file}</th>
          <th scope="col" class="file-kind">
            {t.run.fileKind}
          </th>
          <th scope="col" class="number">
            {t.run.size}
          </th>
          <td />
        </tr>
      </thead>
      <tbody>
        {files.map(({ name, bytes, kind }) => {
          const address = endpoint(["runs", id, "files", ...name.split("/")]);
          const own = name.slice(name.lastIndexOf("/") + 1);
          return (
            <tr key={name}>
              <th scope="row">
                <a href={address} target="_blank">
                  {own}
                </a>
              </th>
              <td class="file-kind">{t.run.fileKinds[kind] ?? kind}</td>
              <td class="number">{size(bytes)}</td>
              <td class="narrow">
                <a
                  class="icon-button"
                  href={address}
                  download={`${id}-${own}`}
                  aria-label={t.run.downloadFile(name)}
                >
                  <Icon name="download" />
                </a>
              </td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}
