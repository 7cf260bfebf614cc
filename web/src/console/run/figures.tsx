// The figures of the measured window.

import { useLanguage, useWords } from "../i18n";
import { count, percent, perSecond, size, span, us } from "../show";
import type { Latency, Step, Summary } from "../types";

export function Figures({ summary, step }: { summary: Summary; step: Step }) {
  const t = useWords();
  const language = useLanguage();
  const names = t.run.figureNames;
  const rates: [string, string][] = [
    [names.window, span(step.window_s, language)],
    [names.offered, `${perSecond(step.offered_in_per_s + step.offered_out_per_s)}/s`],
    [names.achieved, `${perSecond(step.tps)}/s`],
    [names.in, `${perSecond(step.achieved_in_per_s)}/s`],
    [names.out, `${perSecond(step.achieved_out_per_s)}/s`],
    [names.sent, count(step.sent)],
    [names.expected, count(step.expected)],
    [names.received, count(step.received)],
    [names.lost, count(step.lost)],
    [names.duplicates, count(step.duplicates)],
    [names.outOfOrder, count(step.out_of_order)],
    [names.refused, count(step.refused)],
  ];
  const share = (value: number | null | undefined) => (value == null ? "–" : `${percent(value)} %`);
  const usage: [string, string][] = [
    [names.cpu, share(step.cpu_percent)],
    [names.brokerCpu, share(step.broker_cpu_percent)],
    [names.memory, size(step.broker_rss_bytes)],
    [names.hostCpu, share(step.host_cpu_percent)],
    [names.generatorCpu, share(step.generator_cpu_percent)],
  ];
  const latencies: [string, Latency | undefined][] = [
    [names.e2e, step.latency_us],
    [names.service, step.service_us],
    [names.ack, step.ack_us],
    [names.delay, step.send_delay_us],
    [names.rtt, step.rtt_us],
    [names.connect, step.connect_us ?? summary.connect_us],
  ];
  return (
    <div class="figure-columns">
      <section class="card">
        <h2>{t.run.rates}</h2>
        <Pairs rows={rates} />
      </section>
      <div class="stack">
        <section class="card">
          <h2>{t.run.latencies}</h2>
          <Latencies rows={latencies} />
        </section>
        <section class="card">
          <h2>{t.run.usage}</h2>
          <Pairs rows={usage} />
        </section>
      </div>
    </div>
  );
}

function Pairs({ rows }: { rows: [string, string][] }) {
  return (
    <table class="plain">
      <tbody>
        {rows.map(([name, value]) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td class="number">{value}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Latencies({ rows }: { rows: [string, Latency | undefined][] }) {
  const t = useWords();
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={t.run.latencies}>
      <table class="plain">
        <thead>
          <tr>
            <td />
            {[t.run.mean, "p50", "p95", "p99", "p99.9", t.run.max].map((name) => (
              <th key={name} scope="col" class="number">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(([name, latency]) =>
            latency === undefined || latency.count === 0 ? null : (
              <tr key={name}>
                <th scope="row">{name}</th>
                {[
                  latency.mean,
                  latency.p50,
                  latency.p95,
                  latency.p99,
                  latency.p999,
                  latency.max,
                ].map((value, index) => (
                  <td key={index} class="number">
                    {us(value)}
                  </td>
                ))}
              </tr>
            ),
          )}
        </tbody>
      </table>
    </div>
  );
}
