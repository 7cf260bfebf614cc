// How payloads are written and shown.

import { useWords } from "../../i18n";
import type { Format } from "../../mqtt/checks";
import { Choice } from "../../parts/choice";

const FORMATS: Format[] = ["text", "json", "hex"];

export function FormatChoice({
  value,
  change,
}: {
  value: Format;
  change: (value: Format) => void;
}) {
  const words = useWords().broker.websocket;
  return (
    <Choice
      legend={words.format}
      isLegendHidden
      value={value}
      options={FORMATS.map((format) => ({ value: format, label: words.formats[format] }))}
      change={change}
    />
  );
}
