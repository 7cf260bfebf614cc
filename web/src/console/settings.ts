// What a viewer has chosen: language, colours, columns. It is kept in the browser.

import { Store } from "./store";

export type Language = "en" | "zh";
export type Theme = "system" | "light" | "dark";

export interface Settings {
  language: Language;
  theme: Theme;
  // Columns of the records beside the name; absent: the usual ones.
  columns?: string[];
}

const KEY = "tacho.settings";

// The settings that a stored text holds; what is missing or unknown has its default.
export function parsed(text: string | null, browserLanguage: string): Settings {
  const usual: Settings = {
    language: browserLanguage.toLowerCase().startsWith("zh") ? "zh" : "en",
    theme: "system",
  };
  let stored: Partial<Settings> | null;
  try {
    stored = JSON.parse(text ?? "null") as Partial<Settings> | null;
  } catch {
    return usual;
  }
  if (stored === null || typeof stored !== "object") return usual;
  if (stored.language === "en" || stored.language === "zh") usual.language = stored.language;
  if (stored.theme === "light" || stored.theme === "dark") usual.theme = stored.theme;
  if (Array.isArray(stored.columns)) usual.columns = stored.columns.map(String);
  return usual;
}

function stored(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

const inBrowser = typeof document !== "undefined";

export const settings = new Store<Settings>(
  parsed(inBrowser ? stored() : null, inBrowser ? navigator.language : "en"),
);

export function change(part: Partial<Settings>): void {
  settings.set({ ...settings.get(), ...part });
  try {
    localStorage.setItem(KEY, JSON.stringify(settings.get()));
  } catch {
    // Without storage the choice lasts as long as the page.
  }
}

// Puts the chosen colours and language on the page; returns the colours in force.
export function applied({ theme, language }: Settings): "light" | "dark" {
  const dark =
    theme === "dark" || (theme === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
  const root = document.documentElement;
  root.dataset["theme"] = dark ? "dark" : "light";
  root.lang = language;
  return dark ? "dark" : "light";
}
