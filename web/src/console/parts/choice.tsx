// One of a few: buttons side by side that are radio buttons to the keyboard.

import { useId } from "preact/hooks";

export function Choice<T extends string>({
  legend,
  options,
  value,
  change,
  isLegendHidden = false,
}: {
  legend: string;
  options: { value: T; label: string; title?: string }[];
  value: T;
  change: (value: T) => void;
  isLegendHidden?: boolean;
}) {
  const name = useId();
  return (
    <fieldset class="choice">
      <legend class={isLegendHidden ? "hidden-text" : ""}>{legend}</legend>
      <div class="choice-options">
        {options.map((option) => (
          <label key={option.value} {...(option.title ? { title: option.title } : {})}>
            <input
              type="radio"
              name={name}
              checked={option.value === value}
              onChange={() => change(option.value)}
            />
            <span>{option.label}</span>
          </label>
        ))}
      </div>
    </fieldset>
  );
}
