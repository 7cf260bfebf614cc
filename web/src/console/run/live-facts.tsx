// The phase of a run and the figures of its latest second.

import type { Course } from "../../course";
import { brokersOf, busiest, hasLogins, largest } from "../../panels";
import { useWords } from "../i18n";
import { translated } from "../i18n";
import { TileRow } from "../parts/tiles";
import type { Tile } from "../parts/tiles";
import { count, perSecond, size, us } from "../show";

export function LiveFacts({ course }: { course: Course }) {
  const t = useWords();
  return (
    <>
      <Phase course={course} />
      <Tiles course={course} />
      <p class="quiet hint">{t.run.windowHint}</p>
    </>
  );
}

function Phase({ course }: { course: Course }) {
  const t = useWords();
  const { phase, end, run } = course;
  const share = end !== null ? 1 : phase === null ? null : course.phaseShare();
  const planned = phase?.planned_s ?? null;
  const done = planned === null ? course.phaseSeconds() : Math.min(course.phaseSeconds(), planned);
  const name =
    end !== null
      ? t.run.ended
      : phase === null
        ? t.run.getsReady
        : translated(t.labels.charts, phase.name);
  return (
    <div class="phase">
      <p>
        {run?.title != null && <b>{run.title}</b>}
        <b>{name}</b>
        {phase !== null && end === null && (
          <span>
            {t.run.phaseOf(phase.number, phase.of)},{" "}
            {t.run.seconds(done.toFixed(0), planned === null ? null : String(planned))}
          </span>
        )}
      </p>
      <progress
        max={1}
        {...(share === null ? {} : { value: share })}
        aria-label={t.home.progress}
      />
    </div>
  );
}

function Tiles({ course }: { course: Course }) {
  const t = useWords();
  const { second: row, run, connected, failures } = course;
  const several = row !== null && brokersOf(row).length > 0;
  const cpu = row === null ? null : busiest(row);
  const names = t.run.tiles;
  const tiles: Tile[] = [
    ...(row !== null && hasLogins(row)
      ? ([
          [perSecond(row.login_accepted_per_s ?? 0), names.accepted],
          [perSecond(row.login_refused_per_s ?? 0), names.refused],
          [us(row.login_p50_us), names.loginP50],
          [us(row.login_p99_us), names.p99],
        ] as [string, string][])
      : ([
          [perSecond(row?.sent_per_s), names.in],
          [perSecond(row?.received_per_s), names.out],
          [us(row?.e2e_p50_us), names.p50],
          [us(row?.e2e_p99_us), names.p99],
        ] as [string, string][])),
    [count(connected), names.connected(count(run?.clients ?? 0))],
    [count(failures), names.failures, failures > 0],
    [cpu === null ? "–" : `${cpu.toFixed(0)} %`, several ? names.busiest : names.cpu],
    [size(row === null ? null : largest(row)), several ? names.largest : names.memory],
  ];
  return <TileRow tiles={tiles} test="live-tiles" />;
}
