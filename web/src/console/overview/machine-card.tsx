// What stands in the way of good measurements on this machine.

import { useLanguage, useWords } from "../i18n";
import { useIsMachineUnknown, useMachine } from "../machine";
import { Loading } from "../parts/notice";
import { Chip } from "../parts/verdict";
import type { Tone } from "../parts/verdict";

const TONES: Record<string, Tone> = { ok: "good", warning: "warn", problem: "bad" };

export function MachineCard() {
  const t = useWords();
  const language = useLanguage();
  const machine = useMachine();
  const isUnknown = useIsMachineUnknown();
  if (machine === null && isUnknown) return null;
  const findings = machine?.doctor.filter(({ level }) => level !== "ok") ?? [];
  return (
    <section class="card" aria-labelledby="home-machine">
      <div class="card-head">
        <h2 id="home-machine">{t.home.machine}</h2>
        {machine !== null && <span class="quiet">{t.footer.cores(machine.cores)}</span>}
      </div>
      {machine === null && <Loading lines={3} />}
      {machine !== null && findings.length === 0 && <p class="quiet">{t.home.machineFine}</p>}
      {findings.length > 0 && (
        <ul class="machine">
          {findings.map(({ level, text, text_zh: chinese }) => (
            <li key={text}>
              <Chip tone={TONES[level] ?? "calm"}>{t.levels[level] ?? level}</Chip>
              {language === "zh" && chinese ? <p>{chinese}</p> : <p lang="en">{text}</p>}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
