// The words of the chosen language.

import { settings } from "../settings";
import type { Language } from "../settings";
import { useStore } from "../store";
import { en } from "./en";
import type { Dictionary } from "./en";
import { zh } from "./zh";

export type { Dictionary } from "./en";

const DICTIONARIES: Record<Language, Dictionary> = { en, zh };

export function wordsOf(language: Language): Dictionary {
  return DICTIONARIES[language];
}

// The words, and a new drawing when the language changes.
export function useWords(): Dictionary {
  return DICTIONARIES[useStore(settings).language];
}

export function useLanguage(): Language {
  return useStore(settings).language;
}

// The text of a chart or of a variable in the chosen language; what has no translation stays.
export function translated(texts: Record<string, string>, text: string): string {
  const known = texts[text];
  if (known !== undefined) return known;
  // Lines of interfaces and disks end in a word of the charts: `eth0 in`.
  const space = text.lastIndexOf(" ");
  const last = texts[text.slice(space + 1)];
  return space > 0 && last !== undefined ? `${text.slice(0, space)} ${last}` : text;
}
