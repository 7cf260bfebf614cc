// The frame of all pages: navigation, the page of the address, messages.

import { useEffect } from "preact/hooks";

import { AgentsPage } from "./agents/agents";
import { isAdmitted } from "./api";
import { BrokerPage } from "./broker/broker-page";
import { Compare } from "./compare/compare";
import { Home } from "./overview/home";
import { useWords } from "./i18n";
import { loadMachine, useMachine } from "./machine";
import { NewTest } from "./new/new-test";
import { NoToken } from "./no-token";
import { Empty } from "./parts/notice";
import { Toasts } from "./parts/toast";
import { Records } from "./records/records";
import { routeOf, usePlace } from "./router";
import type { Route } from "./router";
import { RunPage } from "./run/run-page";
import { applied, settings } from "./settings";
import { zoneName } from "./show";
import { useStore } from "./store";
import { TopBar } from "./top-bar";
import { TrashPage } from "./trash/trash";
import { Trends } from "./trends/trends";

export function App() {
  const t = useWords();
  const admitted = useStore(isAdmitted);
  const chosen = useStore(settings);
  const { path } = usePlace();
  useEffect(() => {
    applied(chosen);
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    const follow = () => {
      applied(chosen);
      // Charts read colours once: they are told like the pages of runs.
      dispatchEvent(new Event("tacho-colours"));
    };
    follow();
    scheme.addEventListener("change", follow);
    return () => scheme.removeEventListener("change", follow);
  }, [chosen]);
  useEffect(() => {
    if (admitted) void loadMachine();
  }, [admitted]);
  const route: Route = routeOf(path) ?? { page: "unknown" };
  return (
    <>
      <a class="skip" href="#content">
        {t.skip}
      </a>
      <TopBar route={route} isBare={!admitted} />
      <main id="content" tabIndex={-1} class={`page page-${route.page}`}>
        {admitted ? <Content route={route} /> : <NoToken />}
      </main>
      <Footer />
      <Toasts />
    </>
  );
}

function Content({ route }: { route: Route }) {
  const t = useWords();
  switch (route.page) {
    case "home":
      return <Home />;
    case "new":
      return <NewTest />;
    case "records":
      return <Records />;
    case "trash":
      return <TrashPage />;
    case "run":
      return <RunPage id={route.id} key={route.id} />;
    case "compare":
      return <Compare />;
    case "trends":
      return <Trends />;
    case "agents":
      return <AgentsPage />;
    case "broker":
      return <BrokerPage pieces={route.pieces} />;
    case "unknown":
      return (
        <Empty icon="info" title={t.errors.missing} text={t.errors.missingHint}>
          <a class="button primary" href="/">
            {t.errors.toHome}
          </a>
        </Empty>
      );
  }
}

function Footer() {
  const t = useWords();
  const machine = useMachine();
  return (
    <footer class="foot">
      {machine !== null && (
        <span>
          {t.footer.version(machine.version)} · {t.footer.cores(machine.cores)}
        </span>
      )}
      <span>{t.footer.zone(zoneName())}</span>
      <a href="/api/v1/openapi.json" target="_blank">
        {t.footer.api}
      </a>
    </footer>
  );
}
