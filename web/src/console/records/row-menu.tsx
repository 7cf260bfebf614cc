// What can be done with a run of the table.

import { useWords } from "../i18n";
import { useIsOperator } from "../machine";
import { Icon } from "../parts/icon";
import { MenuItem, Popover } from "../parts/menu";
import { change, repeat } from "../run-actions";
import { runName } from "../show";
import type { Row } from "../types";

export function RowMenu({
  row,
  annotate,
  remove,
}: {
  row: Row;
  annotate: () => void;
  remove: () => void;
}) {
  const t = useWords();
  const isOperator = useIsOperator();
  const isOver = row.state !== "running" && row.state !== "queued";
  if (!isOperator) return null;
  return (
    <Popover label={t.records.actionsOf(runName(row))} button={<Icon name="more" />} quiet>
      {(close) => {
        const item = (act: () => void) => () => {
          close();
          act();
        };
        return (
          <>
            <MenuItem
              icon="repeat"
              act={item(() => {
                void repeat(row.id);
              })}
            >
              {t.run.repeat}
            </MenuItem>
            <MenuItem icon="edit" act={item(() => void change(row.id))}>
              {t.run.change}
            </MenuItem>
            <MenuItem icon="tag" act={item(annotate)}>
              {t.run.annotate}
            </MenuItem>
            {isOver && (
              <MenuItem icon="trash" danger act={item(remove)}>
                {t.run.delete}
              </MenuItem>
            )}
          </>
        );
      }}
    </Popover>
  );
}
