// What each agent of a run under way does and uses, by the second.

import { AGENT_COLUMNS, agentCells } from "../../agents";
import type { Course } from "../../course";
import { useWords } from "../i18n";

export function LiveAgents({ course }: { course: Course }) {
  const t = useWords();
  const { agents } = course;
  if (agents.length === 0) return null;
  const names = t.run.agentColumns;
  return (
    <section class="card">
      <h2>{t.run.agents}</h2>
      <div class="scroll log" tabIndex={0} role="region" aria-label={t.run.agents}>
        <table class="plain">
          <thead>
            <tr>
              <th scope="col">{t.run.agent}</th>
              {AGENT_COLUMNS.map((column) => (
                <th scope="col" class="number" key={column}>
                  {names[column]}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {agents.map((agent) => {
              const cells = agentCells(agent);
              return (
                <tr key={agent.name}>
                  <th scope="row">{agent.name}</th>
                  {AGENT_COLUMNS.map((column) => (
                    <td class="number" key={column}>
                      {cells[column]}
                    </td>
                  ))}
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      <p class="quiet hint">{t.run.agentsNote}</p>
    </section>
  );
}
