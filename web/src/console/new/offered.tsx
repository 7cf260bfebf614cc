// The load of a test before it is started.

import { useLanguage, useWords } from "../i18n";
import { Loading } from "../parts/notice";
import { count, perSecond, size, span } from "../show";
import type { Command } from "../types";
import type { PreviewState } from "./use-preview";

export function Offered({
  state,
  isChosen,
  command,
}: {
  state: PreviewState;
  isChosen: boolean;
  command: Command;
}) {
  const t = useWords();
  const language = useLanguage();
  if (!isChosen) return <p class="quiet">{t.make.previewEmpty}</p>;
  const { preview, isStale } = state;
  if (preview === null) return state.error || !isStale ? null : <Loading lines={4} />;
  const { offered } = preview;
  if (offered === null) {
    return (
      <p class="quiet">
        {state.problems.length > 0 ? t.make.problems(state.problems.length) : t.make.previewNone}
      </p>
    );
  }
  const names = t.make.offered;
  const rows: [string, string][] = [
    [count(offered.clients), names.clients],
    [count(offered.publishers), names.publishers],
    [count(offered.subscribers), names.subscribers],
    [perSecond(offered.messages_in_per_s), names.in],
    [perSecond(offered.messages_out_per_s), names.out],
    [size(offered.bytes_in_per_s), names.bytesIn],
    [size(offered.bytes_out_per_s), names.bytesOut],
    [span(offered.duration_s, language), names.duration],
    [count(offered.descriptors), names.descriptors],
    ...(offered.cores == null ? [] : [[coresOf(offered.cores), names.cores] as [string, string]]),
  ];
  return (
    <>
      {command !== "run" && <p class="quiet">{t.make.ofFirst[command]}</p>}
      <dl class={isStale ? "offered stale" : "offered"} aria-busy={isStale}>
        {rows.map(([value, name]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </>
  );
}

function coresOf(cores: number): string {
  return cores < 0.1 ? "< 0.1" : cores.toFixed(1);
}
