// Finished steps, actions and failures of a run under way.

import type { Course } from "../../course";
import { useLanguage, useWords } from "../i18n";
import { count } from "../show";
import { StepTable } from "./step-table";

export function LiveLog({ course, isRun }: { course: Course; isRun: boolean }) {
  const t = useWords();
  const isChinese = useLanguage() === "zh";
  const steps = course.steps.map((step) => ({
    ...step,
    reason: (isChinese ? step.reason_zh : undefined) ?? step.reason,
  }));
  return (
    <>
      {!isRun && steps.length > 0 && (
        <StepTable name={t.run.finishedSteps} rows={steps} />
      )}
      <Actions course={course} />
      <Failures course={course} />
    </>
  );
}

function Actions({ course }: { course: Course }) {
  const t = useWords();
  const isChinese = useLanguage() === "zh";
  const all = course.actions.all();
  if (all.length === 0) return null;
  return (
    <section class="card">
      <h2>{t.run.actions}</h2>
      <div class="scroll log" tabIndex={0} role="region" aria-label={t.run.actions}>
        <table class="plain">
          <thead>
            <tr>
              <th scope="col">{t.run.at}</th>
              <th scope="col">{t.run.what}</th>
              <th scope="col" class="number">
                {t.run.clients}
              </th>
              <th scope="col">{t.run.followed}</th>
            </tr>
          </thead>
          <tbody>
            {all.map((action) => (
              <tr key={`${action.run} ${action.number}`}>
                <th scope="row">{action.at_s.toFixed(1)} s</th>
                <td>{(isChinese ? action.what_zh : undefined) ?? action.what}</td>
                <td class="number">
                  {action.kind === "kill" || action.kind === "run" ? "" : count(action.clients)}
                </td>
                <td>{(isChinese ? action.followed_zh : undefined) ?? action.followed}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Failures({ course }: { course: Course }) {
  const t = useWords();
  if (course.sentences.length === 0) return null;
  return (
    <section class="card">
      <h2>
        {t.run.failures} <small>{count(course.failures)}</small>
      </h2>
      <ul class="prose log" lang="en">
        {course.sentences.map((sentence, index) => (
          <li key={index}>{sentence}</li>
        ))}
      </ul>
    </section>
  );
}
