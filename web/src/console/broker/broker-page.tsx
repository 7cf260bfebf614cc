// The pages of the broker that the console was given.

import { useEffect, useRef } from "preact/hooks";

import { useMachine } from "../machine";
import { useWords } from "../i18n";
import { Empty } from "../parts/notice";
import { address } from "../router";
import { useTitle } from "../title";
import { AccessPage } from "./access";
import { AlarmsPage } from "./alarms";
import { ClientPage } from "./client";
import { ClientsPage } from "./clients";
import { ConfigPage } from "./config";
import { EventsPage } from "./events";
import { BridgesPage } from "./bridges";
import { GroupsPage } from "./groups";
import { Overview } from "./overview";
import { RetainedPage } from "./retained";
import { TopicsPage } from "./topics";
import { TracePage } from "./trace";
import { WebSocketPage } from "./websocket/websocket-page";

export const PARTS = [
  "overview",
  "clients",
  "topics",
  "retained",
  "groups",
  "bridges",
  "access",
  "config",
  "events",
  "trace",
  "websocket",
  "alarms",
] as const;
export type Part = (typeof PARTS)[number];

export function partAddress(part: Part): string {
  return part === "overview" ? "/broker" : `/broker/${part}`;
}

export function BrokerPage({ pieces }: { pieces: string[] }) {
  const t = useWords();
  const machine = useMachine();
  const part = PARTS.find((one) => one === (pieces[0] ?? "overview"));
  const clientId = part === "clients" ? pieces[1] : undefined;
  const tabs = useRef<HTMLElement>(null);
  // In a narrow window the tabs are scrolled: the one at hand is seen.
  useEffect(() => {
    const current = tabs.current?.querySelector("[aria-current]");
    current?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [part]);
  useTitle(clientId ?? (part === undefined ? "" : t.broker.parts[part]), t.broker.title);
  if (machine !== null && machine.broker == null) {
    return (
      <Empty icon="info" title={t.broker.noneTitle} text={t.broker.noneText}>
        <pre>tacho serve --manage</pre>
      </Empty>
    );
  }
  if (part === undefined || pieces.length > (part === "clients" ? 2 : 1)) {
    return (
      <Empty icon="info" title={t.errors.missing} text={t.errors.missingHint}>
        <a class="button primary" href="/broker">
          {t.broker.title}
        </a>
      </Empty>
    );
  }
  return (
    <>
      <div class="page-head broker-head">
        <h1>{t.broker.title}</h1>
        <span class="quiet place">{machine?.broker ?? ""}</span>
      </div>
      <nav class="tabs" ref={tabs} aria-label={t.broker.sections}>
        {PARTS.map((one) => (
          <a
            key={one}
            href={address(partAddress(one))}
            {...(one === part ? { "aria-current": "page" as const } : {})}
          >
            {t.broker.parts[one]}
          </a>
        ))}
      </nav>
      {clientId === undefined ? <Content part={part} /> : <ClientPage id={clientId} key={clientId} />}
    </>
  );
}

function Content({ part }: { part: Part }) {
  switch (part) {
    case "overview":
      return <Overview />;
    case "clients":
      return <ClientsPage />;
    case "topics":
      return <TopicsPage />;
    case "retained":
      return <RetainedPage />;
    case "groups":
      return <GroupsPage />;
    case "bridges":
      return <BridgesPage />;
    case "access":
      return <AccessPage />;
    case "config":
      return <ConfigPage />;
    case "events":
      return <EventsPage />;
    case "trace":
      return <TracePage />;
    case "websocket":
      return <WebSocketPage />;
    case "alarms":
      return <AlarmsPage />;
  }
}
