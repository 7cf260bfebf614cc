// Tags and note of a run.

import { useState } from "preact/hooks";

import { useWords } from "../i18n";
import { annotate, tagsOf } from "../run-actions";
import type { Row } from "../types";
import { Dialog } from "./dialog";
import { Field, TextInput } from "./field";

export function Annotate({
  row,
  close,
  changed,
}: {
  row: Row;
  close: () => void;
  changed: (row: Row) => void;
}) {
  const t = useWords();
  const [tags, setTags] = useState(row.tags.join(", "));
  const [note, setNote] = useState(row.note);
  const save = async () => {
    const next = await annotate(row.id, { tags: tagsOf(tags), note });
    if (next === null) return;
    changed(next);
    close();
  };
  return (
    <Dialog title={t.run.annotate} close={close}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        <Field label={t.make.tags} help={t.records.tagsHelp}>
          {(ids) => (
            <TextInput ids={ids} value={tags} change={setTags} placeholder={t.make.tagExample} />
          )}
        </Field>
        <Field label={t.make.note}>
          {(ids) => (
            <textarea
              {...ids}
              rows={4}
              value={note}
              onInput={(event) => setNote(event.currentTarget.value)}
            />
          )}
        </Field>
        <div class="buttons end">
          <button type="button" class="button" onClick={close}>
            {t.words.cancel}
          </button>
          <button type="submit" class="button primary">
            {t.words.save}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
