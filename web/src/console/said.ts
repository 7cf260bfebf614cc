// What the program says in the language of the viewer: in English, and in Chinese where it knows
// the sentence.

import type { ApiError } from "./api";
import { wordsOf } from "./i18n";
import type { Language } from "./settings";

export interface Sentence {
  message: string;
  message_zh?: string | undefined;
}

export function said({ message, message_zh: zh }: Sentence, language: Language): string {
  return language === "zh" ? (zh ?? message) : message;
}

// Why a request did not work.
export function errorText(error: ApiError, language: Language): string {
  return error.status === 0 && error.message === ""
    ? wordsOf(language).errors.connection
    : said({ message: error.message, message_zh: error.messageZh }, language);
}
