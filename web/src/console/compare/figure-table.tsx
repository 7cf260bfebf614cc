// The figures of all sides, and their changes against the first.

import { useWords } from "../i18n";
import { VerdictChip } from "../parts/verdict";
import { inUnit, signed } from "../show";
import type { Change, Figure } from "../types";
import { ChangePlot } from "./change-plot";
import { letter } from "./sides";

export function FigureTable({
  label,
  figures,
  names,
}: {
  label: string;
  figures: Figure[];
  names: string[];
}) {
  const t = useWords();
  const title = label === "" ? t.run.figures : label;
  return (
    <section class="card">
      <h2>{title}</h2>
      <div class="scroll" tabIndex={0} role="region" aria-label={title}>
        <table class="plain compared">
          <thead>
            <tr>
              <th scope="col">{t.compare.figure}</th>
              {names.map((name, index) => (
                <th key={index} scope="col" class={`number c${index + 1}`} title={name}>
                  <span class="side-letter">{letter(index)}</span>
                </th>
              ))}
              {names.slice(1).map((name, index) => (
                <th key={index} scope="col" class="number" title={name}>
                  {t.compare.change} {letter(index + 1)}
                </th>
              ))}
              <th scope="col" class="wide-only">
                {t.compare.interval}
              </th>
            </tr>
          </thead>
          <tbody>
            {figures.map((figure) => (
              <Row key={figure.name} figure={figure} names={names} />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Row({ figure, names }: { figure: Figure; names: string[] }) {
  const t = useWords();
  const { unit, scale } = figure;
  const lower = figure.better === "lower";
  return (
    <tr>
      <th scope="row">
        {translatedLabel(figure, t.figures)}
        <small>{lower ? t.compare.lower : t.compare.higher}</small>
      </th>
      {figure.sides.map(({ median, min, max, values }, index) => (
        <td key={index} class="number">
          {inUnit(median, unit)}
          {values.length > 1 && (
            <small>{t.compare.spread(inUnit(min, unit), inUnit(max, unit))}</small>
          )}
        </td>
      ))}
      {figure.changes.map((change, index) => (
        <td key={index} class="number change">
          <span>{signed(change.change, scale, unit)}</span>
          <VerdictChip verdict={change.verdict} />
          {change.low !== null && change.high !== null && (
            <small>{intervalOf(change, figure)}</small>
          )}
        </td>
      ))}
      <td class="wide-only">
        <ChangePlot figure={figure} names={names} />
      </td>
    </tr>
  );
}

function intervalOf({ low, high }: Change, { scale, unit }: Figure): string {
  return `${signed(low, scale, unit)} … ${signed(high, scale, unit)}`;
}

function translatedLabel(figure: Figure, known: Record<string, string>): string {
  return known[figure.name] ?? figure.label ?? figure.name;
}
