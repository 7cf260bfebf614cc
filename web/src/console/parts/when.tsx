// A moment in the viewer's zone; the exact one with its zone under the pointer.

import { useLanguage } from "../i18n";
import { NONE, exactMoment, moment } from "../show";

export function When({ iso }: { iso: string | null }) {
  const language = useLanguage();
  if (iso === null) return <>{NONE}</>;
  return (
    <time dateTime={iso} title={exactMoment(iso, language)}>
      {moment(iso, language)}
    </time>
  );
}
