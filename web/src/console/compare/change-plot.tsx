// Changes of a figure as points with their intervals, around no change; the noise is shaded.

import { useWords } from "../i18n";
import { signed } from "../show";
import type { Figure } from "../types";
import { letter } from "./sides";

const WIDTH = 220;
const ROW = 16;

export function ChangePlot({ figure, names }: { figure: Figure; names: string[] }) {
  const t = useWords();
  const { changes, scale, unit } = figure;
  const ends = changes
    .flatMap(({ change, low, high, floor }) => [change, low, high, floor])
    .flatMap((value) => (value === null ? [] : [Math.abs(value)]));
  const most = Math.max(...ends, 0);
  if (most === 0) return <span class="quiet">–</span>;
  const x = (value: number) => WIDTH / 2 + (value / most) * (WIDTH / 2 - 8);
  const said = changes
    .map(({ change }, index) => `${letter(index + 1)} ${signed(change, scale, unit)}`)
    .join(", ");
  return (
    <svg
      class="change-plot"
      width={WIDTH}
      height={changes.length * ROW + 8}
      role="img"
      aria-label={`${t.compare.chart(names[0] ?? "")}: ${said}`}
    >
      {changes.map(({ change, low, high, floor, verdict }, index) => {
        const y = 4 + index * ROW + ROW / 2;
        return (
          <g key={index} class={`c${index + 2} is-${verdict}`}>
            {floor !== null && (
              <rect
                class="noise"
                x={x(-floor)}
                y={y - 6}
                width={x(floor) - x(-floor)}
                height="12"
              />
            )}
            {low !== null && high !== null && (
              <line class="interval" x1={x(low)} y1={y} x2={x(high)} y2={y} />
            )}
            {change !== null && <circle class="point" cx={x(change)} cy={y} r="4" />}
          </g>
        );
      })}
      <line class="zero" x1={WIDTH / 2} y1="0" x2={WIDTH / 2} y2={changes.length * ROW + 8} />
    </svg>
  );
}
