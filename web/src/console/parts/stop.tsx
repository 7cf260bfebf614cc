// Stopping a run: asked again before it happens.

import { useState } from "preact/hooks";

import { useWords } from "../i18n";
import { stop } from "../run-actions";
import { DangerButtons, Dialog } from "./dialog";
import { Icon } from "./icon";

export function StopButton({ id }: { id: string }) {
  const t = useWords();
  const [isAsking, setAsking] = useState(false);
  return (
    <>
      <button type="button" class="button danger" onClick={() => setAsking(true)}>
        <Icon name="stop" />
        {t.run.stop}
      </button>
      {isAsking && (
        <Dialog title={t.run.stopTitle} close={() => setAsking(false)}>
          <p>{t.run.stopText}</p>
          <DangerButtons
            keep={t.run.keepRunning}
            label={t.run.stop}
            close={() => setAsking(false)}
            act={() => {
              setAsking(false);
              void stop(id);
            }}
          />
        </Dialog>
      )}
    </>
  );
}
