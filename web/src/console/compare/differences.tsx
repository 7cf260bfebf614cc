// What is not the same on all sides.

import { useWords } from "../i18n";
import type { Difference } from "../types";
import { letter } from "./sides";

export function Differences({
  title,
  differences,
  names,
}: {
  title: string;
  differences: Difference[];
  names: string[];
}) {
  const t = useWords();
  return (
    <section class="card">
      <h2>{title}</h2>
      {differences.length === 0 ? (
        <p class="quiet">{t.compare.same}</p>
      ) : (
        <div class="scroll" tabIndex={0} role="region" aria-label={title}>
          <table class="plain texts">
            <thead>
              <tr>
                <td />
                {names.map((name, index) => (
                  <th key={index} scope="col" title={name} class={`c${index + 1}`}>
                    <span class="side-letter">{letter(index)}</span>
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {differences.map(({ name, values }) => (
                <tr key={name}>
                  <th scope="row">{name}</th>
                  {values.map((value, index) => (
                    <td key={index}>{value === "" ? "–" : value}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}
