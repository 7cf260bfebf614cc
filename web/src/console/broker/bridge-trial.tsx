// What a remote broker answers to a bridge that is tested.

import { useWords } from "../i18n";
import { Chip } from "../parts/verdict";
import { count } from "../show";
import type { BridgeTrial } from "./types";

export function TrialResult({ trial }: { trial: BridgeTrial }) {
  const t = useWords();
  const words = t.broker.bridges.trial;
  const { accepted, remote, address, problem, reason, took_ms: took } = trial;
  return (
    <p class="facts trial" role="status">
      <Chip tone={accepted ? "good" : "bad"}>{accepted ? words.accepted : words.refused}</Chip>
      <span>{address === null || remote.includes(address) ? remote : `${remote} (${address})`}</span>
      {(problem ?? reason) !== null && <span lang="en">{problem ?? reason}</span>}
      {trial.certificate_verified === false && <span>{words.unverified}</span>}
      <span class="quiet">{words.took(count(took))}</span>
    </p>
  );
}
