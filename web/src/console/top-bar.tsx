// The bar above all pages.

import { useWords } from "./i18n";
import { useIsOperator, useMachine } from "./machine";
import { Icon } from "./parts/icon";
import type { IconName } from "./parts/icon";
import type { Route } from "./router";
import { change, settings } from "./settings";
import type { Theme } from "./settings";
import { useStore } from "./store";

export function TopBar({ route, isBare }: { route: Route; isBare: boolean }) {
  const t = useWords();
  const isOperator = useIsOperator();
  const machine = useMachine();
  const links: [Route["page"], string, string][] = [
    ["home", "/", t.nav.home],
    ["records", "/runs", t.nav.records],
    ["compare", "/compare", t.nav.compare],
    ["trends", "/trends", t.nav.trends],
    ...(machine?.bus == null
      ? []
      : ([["agents", "/agents", t.nav.agents]] as [Route["page"], string, string][])),
    ...(machine?.broker == null
      ? []
      : ([["broker", "/broker", t.nav.broker]] as [Route["page"], string, string][])),
  ];
  const isAt = (page: Route["page"]) =>
    route.page === page ||
    (page === "records" && (route.page === "run" || route.page === "trash"));
  return (
    <header class="top-bar">
      <div class="top-inner">
        <a class="brand" href="/" aria-label="Tacho">
          <Mark />
          <span>Tacho</span>
        </a>
        {!isBare && (
          <nav aria-label={t.nav.main}>
            {links.map(([page, href, name]) => (
              <a
                key={page}
                href={href}
                {...(isAt(page) ? { "aria-current": "page" as const } : {})}
              >
                {name}
              </a>
            ))}
          </nav>
        )}
        <div class="top-tools">
          <LanguageSwitch />
          <ThemeSwitch />
          {!isBare && isOperator && (
            <a class="button primary new-test" href="/new">
              <Icon name="plus" />
              <span>{t.nav.newTest}</span>
            </a>
          )}
        </div>
      </div>
    </header>
  );
}

// A tachometer.
function Mark() {
  return (
    <svg class="mark" viewBox="0 0 32 32" aria-hidden="true" focusable="false">
      <path class="mark-dial" d="M6.5 24.5a12.5 12.5 0 1119 0" />
      <path class="mark-red" d="M25.5 24.5a12.5 12.5 0 002.6-10.4" />
      <path class="mark-needle" d="M16 17.5L22.5 10" />
      <circle class="mark-hub" cx="16" cy="17.5" r="2.4" />
    </svg>
  );
}

function LanguageSwitch() {
  const t = useWords();
  const { language } = useStore(settings);
  // The name of the other language, in that language.
  const [other, name] = language === "en" ? ["zh" as const, "中文"] : ["en" as const, "English"];
  return (
    <button
      type="button"
      class="icon-button text"
      lang={other}
      aria-label={`${t.nav.language}: ${name}`}
      onClick={() => change({ language: other })}
    >
      {language === "en" ? "中文" : "EN"}
    </button>
  );
}

const THEMES: Theme[] = ["system", "light", "dark"];
const THEME_ICONS: Record<Theme, IconName> = { system: "screen", light: "sun", dark: "moon" };

function ThemeSwitch() {
  const t = useWords();
  const { theme } = useStore(settings);
  const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length]!;
  return (
    <button
      type="button"
      class="icon-button"
      title={`${t.nav.theme}: ${t.nav[theme]}`}
      aria-label={`${t.nav.theme}: ${t.nav[theme]}`}
      onClick={() => change({ theme: next })}
    >
      <Icon name={THEME_ICONS[theme]} />
    </button>
  );
}
