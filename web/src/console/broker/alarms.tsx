// What is wrong at the broker by its own account, and what was.

import { useLanguage, useWords } from "../i18n";
import { Failure, Loading } from "../parts/notice";
import { Chip } from "../parts/verdict";
import { moment, span } from "../show";
import { Table } from "./parts";
import type { AlarmRow, Alarms } from "./types";
import { usePolled } from "./use-polled";

export function AlarmsPage() {
  const t = useWords();
  const words = t.broker.alarms;
  const alarms = usePolled<Alarms>(["alarms"], 5);
  if (alarms.data === null)
    return alarms.error ? (
      <Failure error={alarms.error} retry={alarms.reload} />
    ) : (
      <Loading lines={4} />
    );
  const { active, past } = alarms.data;
  return (
    <>
      {alarms.error && <Failure error={alarms.error} retry={alarms.reload} />}
      <section class="card">
        <h2>{words.active}</h2>
        {active.length === 0 ? <p class="quiet">{words.none}</p> : <Rows rows={active} />}
      </section>
      <section class="card">
        <h2>{words.past}</h2>
        {past.length === 0 ? <p class="quiet">{words.nonePast}</p> : <Rows rows={past} />}
      </section>
    </>
  );
}

function Rows({ rows }: { rows: AlarmRow[] }) {
  const t = useWords();
  const language = useLanguage();
  const words = t.broker.alarms;
  const isPast = rows[0]?.ended_ms !== undefined;
  return (
    <Table
      label={isPast ? words.past : words.active}
      rows={rows}
      keyOf={(row) => `${row.alarm} ${row.subject ?? ""} ${row.since_ms}`}
      columns={[
        {
          name: words.alarm,
          cell: ({ alarm, subject }) => (
            <>
              <Chip tone={isPast ? "calm" : "bad"}>{words.names[alarm] ?? alarm}</Chip>{" "}
              {subject ?? ""}
            </>
          ),
        },
        { name: words.text, cell: ({ text }) => <span lang="en">{text}</span> },
        { name: words.since, isMinor: true, cell: (row) => moment(new Date(row.since_ms).toISOString(), language) },
        isPast
          ? {
              name: words.lasted,
              cell: (row) => span(((row.ended_ms ?? row.since_ms) - row.since_ms) / 1000, language),
            }
          : {
              name: words.lasts,
              cell: (row) => span((Date.now() - row.since_ms) / 1000, language),
            },
      ]}
    />
  );
}
