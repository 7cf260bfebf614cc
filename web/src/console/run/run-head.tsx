// Name, facts and actions of a run.

import { useState } from "preact/hooks";

import { useLanguage, useWords } from "../i18n";
import { useIsOperator } from "../machine";
import { Annotate } from "../parts/annotate";
import { Icon } from "../parts/icon";
import { MenuItem, Popover } from "../parts/menu";
import { Star } from "../parts/star";
import { StopButton } from "../parts/stop";
import { RunChip } from "../parts/verdict";
import { When } from "../parts/when";
import { address, navigate } from "../router";
import { annotate, cancel, change, remove, repeat } from "../run-actions";
import { span, targetName, runName } from "../show";
import type { Run } from "../types";
import { Share } from "./share";

export function RunHead({
  run,
  changed,
  reload,
}: {
  run: Run;
  changed: (part: Partial<Run>) => void;
  reload: () => void;
}) {
  const t = useWords();
  const language = useLanguage();
  const isOperator = useIsOperator();
  const description =
    (language === "zh" && run.summary?.description_zh) || run.summary?.description;
  return (
    <header class="run-head">
      <nav class="crumbs" aria-label={t.nav.records}>
        <a href="/runs">{t.nav.records}</a>
        <Icon name="right" />
        <span>{run.id}</span>
      </nav>
      <div class="run-title">
        <div>
          <h1>
            {runName(run)}
            <Star row={run} changed={changed} isLocked={!isOperator} />
          </h1>
          {description && <p class="lead">{description}</p>}
          <p class="facts">
            <RunChip row={run} />
            <span>{t.kinds[run.kind] ?? run.kind}</span>
            {run.scenario !== runName(run) && <span>{run.scenario}</span>}
            <span>{targetName(run.target, t.words.ownBroker)}</span>
            {run.version !== "" && <span>{t.footer.version(run.version)}</span>}
            {run.started !== null && (
              <span>
                <When iso={run.started} />
              </span>
            )}
            {run.state === "finished" && <span>{span(run.duration_s, language)}</span>}
          </p>
        </div>
        <Actions run={run} changed={changed} reload={reload} />
      </div>
      {(run.note !== "" || run.tags.length > 0 || run.baseline === true) && (
        <div class="annotations">
          {run.baseline === true && (
            <span class="tag strong">
              <Icon name="flag" />
              {t.run.baseline}
            </span>
          )}
          {run.tags.map((tag) => (
            <a key={tag} class="tag" href={address("/runs", { tag })}>
              {tag}
            </a>
          ))}
          {run.note !== "" && <p class="run-note">{run.note}</p>}
        </div>
      )}
    </header>
  );
}

function Actions({
  run,
  changed,
  reload,
}: {
  run: Run;
  changed: (part: Partial<Run>) => void;
  reload: () => void;
}) {
  const t = useWords();
  const isOperator = useIsOperator();
  const [open, setOpen] = useState<"share" | "annotate" | null>(null);
  const isOver = run.state !== "running" && run.state !== "queued";
  const close = () => setOpen(null);
  return (
    <div class="buttons run-actions">
      {isOperator && run.state === "running" && <StopButton id={run.id} />}
      {isOperator && run.state === "queued" && (
        <button
          type="button"
          class="button danger"
          onClick={() => {
            void cancel(run.id, reload);
          }}
        >
          <Icon name="cross" />
          {t.run.cancel}
        </button>
      )}
      {isOperator && isOver && (
        <button
          type="button"
          class="button"
          onClick={() => {
            void repeat(run.id);
          }}
        >
          <Icon name="repeat" />
          {t.run.repeat}
        </button>
      )}
      <button type="button" class="button" onClick={() => setOpen("share")}>
        <Icon name="share" />
        {t.run.share}
      </button>
      <Popover label={t.words.more} button={<Icon name="more" />}>
        {(closeMenu) => {
          const item = (act: () => void) => () => {
            closeMenu();
            act();
          };
          return (
            <>
              {isOperator && (
                <MenuItem icon="edit" act={item(() => void change(run.id))}>
                  {t.run.change}
                </MenuItem>
              )}
              {isOperator && (
                <MenuItem icon="tag" act={item(() => setOpen("annotate"))}>
                  {t.run.annotate}
                </MenuItem>
              )}
              {isOperator && run.state === "finished" && (
                <MenuItem
                  icon="flag"
                  act={item(() => {
                    void annotate(run.id, { baseline: run.baseline !== true }).then(
                      (row) => row !== null && changed(row),
                    );
                  })}
                >
                  {run.baseline === true ? t.run.unsetBaseline : t.run.setBaseline}
                </MenuItem>
              )}
              {run.state === "finished" && run.baseline_run != null && (
                <MenuItem
                  icon="columns"
                  act={item(() =>
                    navigate(address("/compare", { ids: `${run.baseline_run},${run.id}` })),
                  )}
                >
                  {t.run.compareBaseline}
                </MenuItem>
              )}
              <MenuItem icon="print" act={item(() => print())}>
                {t.run.print}
              </MenuItem>
              {isOperator && isOver && (
                <MenuItem
                  icon="trash"
                  danger
                  act={item(() => {
                    void remove([run.id], () => undefined);
                    navigate("/runs");
                  })}
                >
                  {t.run.delete}
                </MenuItem>
              )}
            </>
          );
        }}
      </Popover>
      {open === "share" && <Share run={run} close={close} />}
      {open === "annotate" && <Annotate row={run} close={close} changed={changed} />}
    </div>
  );
}
