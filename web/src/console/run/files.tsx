// The files of a run.

import { endpoint } from "../api";
import { useWords } from "../i18n";
import { Icon } from "../parts/icon";
import { Empty } from "../parts/notice";
import { size } from "../show";
import type { Run } from "../types";

export function Files({ run }: { run: Run }) {
  const t = useWords();
  const files = run.files ?? [];
  if (files.length === 0) return <Empty icon="info" title={t.run.noFiles} />;
  return (
    <section class="card">
      <table class="plain">
        <thead>
          <tr>
            <th scope="col">{t.run.file}</th>
            <th scope="col" class="number">
              {t.run.size}
            </th>
            <td />
          </tr>
        </thead>
        <tbody>
          {files.map(({ name, bytes }) => {
            const address = endpoint(["runs", run.id, "files", ...name.split("/")]);
            return (
              <tr key={name}>
                <th scope="row">
                  <a href={address} target="_blank">
                    {name}
                  </a>
                </th>
                <td class="number">{size(bytes)}</td>
                <td class="narrow">
                  <a
                    class="icon-button"
                    href={address}
                    download={name}
                    aria-label={`${t.run.download}: ${name}`}
                  >
                    <Icon name="download" />
                  </a>
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </section>
  );
}
