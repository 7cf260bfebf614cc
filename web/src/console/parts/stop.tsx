// Stopping a run: asked again before it happens.

import { useState } from "preact/hooks";

import { useWords } from "../i18n";
import { stop } from "../run-actions";
import { Dialog } from "./dialog";
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
          <div class="buttons end">
            <button type="button" class="button" onClick={() => setAsking(false)}>
              {t.run.keepRunning}
            </button>
            <button
              type="button"
              class="button danger solid"
              onClick={() => {
                setAsking(false);
                void stop(id);
              }}
            >
              {t.run.stop}
            </button>
          </div>
        </Dialog>
      )}
    </>
  );
}
