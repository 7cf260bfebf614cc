// Asks before a bridge is removed.

import { useState } from "preact/hooks";

import { useWords } from "../i18n";
import { DangerButtons, Dialog } from "../parts/dialog";
import { say } from "../parts/toast";
import { count } from "../show";
import { act } from "./api";
import type { Bridge } from "./types";
import { useDoing } from "./use-doing";

export function BridgeRemoval({
  bridge,
  close,
  done,
}: {
  bridge: Bridge;
  close: () => void;
  done: () => void;
}) {
  const t = useWords();
  const words = t.broker.bridges.removal;
  const [discard, setDiscard] = useState(false);
  const [isBusy, begin] = useDoing();
  const waiting = bridge.buffered_messages + bridge.inflight;
  const remove = async () => {
    await act("DELETE", ["bridges", bridge.name], discard ? { discard: "true" } : {});
    say(words.removed(bridge.name));
    done();
  };
  return (
    <Dialog title={words.title(bridge.name)} close={close}>
      <p>{words.text}</p>
      {waiting > 0 && (
        <label class="check">
          <input
            type="checkbox"
            checked={discard}
            onChange={(event) => setDiscard(event.currentTarget.checked)}
          />
          <span>{words.discard(count(waiting))}</span>
        </label>
      )}
      <DangerButtons
        label={words.remove}
        isDisabled={isBusy}
        close={close}
        act={() => begin(remove)}
      />
    </Dialog>
  );
}
