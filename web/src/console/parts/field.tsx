// A form's field: label, unit, help, and what is wrong beside it.

import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";

import { useWords } from "../i18n";
import { Icon } from "./icon";

export interface FieldIds {
  id: string;
  "aria-describedby"?: string;
  "aria-invalid"?: boolean;
}

export function Field({
  label,
  help,
  error,
  unit,
  name,
  children,
  aside,
}: {
  label: string;
  help?: ComponentChildren;
  error?: string | undefined;
  unit?: string | null;
  // By which problems find the field.
  name?: string;
  children: (ids: FieldIds) => ComponentChildren;
  aside?: ComponentChildren;
}) {
  const id = useId();
  const described = [error && `${id}-error`, help && `${id}-help`].filter(Boolean).join(" ");
  const ids: FieldIds = {
    id,
    ...(described === "" ? {} : { "aria-describedby": described }),
    ...(error ? { "aria-invalid": true } : {}),
  };
  return (
    <div class={error ? "field invalid" : "field"} data-field={name}>
      <div class="field-head">
        <label for={id}>{label}</label>
        {aside}
      </div>
      <div class={unit ? "with-unit" : "without-unit"}>
        {children(ids)}
        {unit && <span class="unit">{unit}</span>}
      </div>
      {error && (
        <p class="field-error" id={`${id}-error`}>
          <Icon name="warning" />
          {error}
        </p>
      )}
      {help && (
        <p class="field-help" id={`${id}-help`}>
          {help}
        </p>
      )}
    </div>
  );
}

// What is wrong with a form as a whole.
export function Complaint({ children }: { children: ComponentChildren }) {
  return (
    <p class="field-error" role="alert">
      <Icon name="warning" />
      {children}
    </p>
  );
}

export function PasswordInput({
  ids,
  value,
  change,
}: {
  ids: FieldIds;
  value: string;
  change: (value: string) => void;
}) {
  return (
    <input
      {...ids}
      type="password"
      value={value}
      autocomplete="off"
      onInput={(event) => change(event.currentTarget.value)}
    />
  );
}

export function TextInput({
  ids,
  value,
  change,
  placeholder,
  numeric = false,
  list,
}: {
  ids: FieldIds;
  value: string;
  change: (value: string) => void;
  placeholder?: string | undefined;
  numeric?: boolean;
  list?: string;
}) {
  return (
    <input
      {...ids}
      type="text"
      value={value}
      autocomplete="off"
      spellcheck={false}
      {...(placeholder === undefined ? {} : { placeholder })}
      {...(numeric ? { inputMode: "decimal" as const } : {})}
      {...(list === undefined ? {} : { list })}
      onInput={(event) => change(event.currentTarget.value)}
    />
  );
}

// Several texts, one a row, with buttons to add and remove them.
export function ListField({
  label,
  help,
  values,
  change,
  example,
  errors,
  name,
  problem,
}: {
  label: string;
  help: string;
  values: string[];
  change: (values: string[]) => void;
  example: string;
  name: string;
  // By row.
  errors: (index: number) => string | undefined;
  problem: string | undefined;
}) {
  const t = useWords();
  const id = useId();
  return (
    <fieldset class={problem ? "field invalid list-field" : "field list-field"} data-field={name}>
      <legend>{label}</legend>
      {values.map((value, index) => {
        const error = errors(index);
        return (
          <div class="list-row" key={index} data-field={`${name}[${index}]`}>
            <input
              type="text"
              value={value}
              placeholder={example}
              spellcheck={false}
              autocomplete="off"
              aria-label={`${label} ${index + 1}`}
              aria-describedby={error ? `${id}-${index}` : id}
              aria-invalid={error !== undefined}
              onInput={(event) => {
                const text = event.currentTarget.value;
                change(values.map((old, at) => (at === index ? text : old)));
              }}
            />
            <button
              type="button"
              class="icon-button"
              aria-label={`${t.words.remove}: ${label} ${index + 1}`}
              onClick={() => change(values.filter((_, at) => at !== index))}
            >
              <Icon name="cross" />
            </button>
            {error && (
              <p class="field-error" id={`${id}-${index}`}>
                <Icon name="warning" />
                {error}
              </p>
            )}
          </div>
        );
      })}
      {problem && (
        <p class="field-error">
          <Icon name="warning" />
          {problem}
        </p>
      )}
      <p class="field-help" id={id}>
        {help} <code>{example}</code>
      </p>
      <button
        type="button"
        class="button small"
        aria-label={`${t.words.add}: ${label}`}
        onClick={() => change([...values, ""])}
      >
        <Icon name="plus" />
        {t.words.add}
      </button>
    </fieldset>
  );
}
