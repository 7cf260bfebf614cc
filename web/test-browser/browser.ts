// A browser of the system for the tests; without one they are skipped, and say why.

import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";

import type { Browser, BrowserContext, Page } from "playwright-core";

import { laidOut } from "./layout";

const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const require = createRequire(`${process.cwd()}/package.json`);

const executable = process.env["CHROMIUM"] ?? PLACES.find((place) => existsSync(place));

if (executable === undefined && process.env["TACHO_REQUIRE_PEERS"] !== undefined) {
  throw new Error(`no Chromium at ${PLACES.join(", ")}; name one with CHROMIUM=…`);
}

// Why there is no test in a browser; false where there is one.
export const SKIP: string | false =
  executable === undefined
    ? `no Chromium at ${PLACES.join(", ")}; name one with CHROMIUM=…`
    : false;

export const PICTURES = "out/pictures";

export async function launched(): Promise<Browser> {
  mkdirSync(PICTURES, { recursive: true });
  const { chromium } = await import("playwright-core");
  return chromium.launch({
    executablePath: executable!,
    args: ["--no-sandbox", "--font-render-hinting=none"],
  });
}

export interface View {
  width: number;
  theme: "light" | "dark";
  language: "en" | "zh";
}

// A window of that width.
export function sizeOf(width: number): { width: number; height: number } {
  return { width, height: width < 500 ? 844 : 900 };
}

// A machine that is busy with other tests takes its time; what is wrong does not get right by then.
export const PATIENCE_MS = 60_000;

// A window of the browser with the choices of a viewer. Errors of the page are gathered.
export async function opened(
  browser: Browser,
  view: View,
  errors: string[],
): Promise<BrowserContext> {
  const context = await browser.newContext({
    viewport: sizeOf(view.width),
    timezoneId: "Europe/Berlin",
    reducedMotion: "reduce",
    colorScheme: view.theme === "dark" ? "light" : "dark",
  });
  await context.addInitScript(
    `try { localStorage.getItem("tacho.settings") ?? localStorage.setItem("tacho.settings", ${JSON.stringify(
      JSON.stringify({ theme: view.theme, language: view.language }),
    )}) } catch { /* A frame of its own origin. */ }`,
  );
  context.setDefaultTimeout(PATIENCE_MS);
  context.on("page", (page) => {
    page.on("pageerror", (error) => errors.push(`${page.url()}: ${error.message}`));
    page.on("console", (message) => {
      // Answers that a test wants to be refused are no fault of the page.
      if (message.type() === "error" && !message.text().includes("Failed to load resource")) {
        errors.push(`${page.url()}: ${message.text()}`);
      }
    });
  });
  return context;
}

// Waits until nothing is loading.
export async function settled(page: Page): Promise<void> {
  await page.waitForFunction(
    () =>
      document.querySelector("#content") !== null &&
      document.querySelector(".skeleton") === null &&
      document.querySelector("[aria-busy=true]") === null,
  );
  await page.evaluate(
    () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))),
  );
}

let axe: string | null = null;

// Serious and critical findings of axe-core, a line each: of all rules, or of colours alone.
export async function unreachable(page: Page, rules: "all" | "colours"): Promise<string[]> {
  axe ??= readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
  if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(axe);
  return page.evaluate(async (wanted) => {
    const { axe: engine } = globalThis as unknown as {
      axe: {
        run: (
          context: unknown,
          options: unknown,
        ) => Promise<{
          violations: {
            id: string;
            impact: string;
            help: string;
            nodes: { html: string; failureSummary: string }[];
          }[];
        }>;
      };
    };
    const { violations } = await engine.run(
      { exclude: [["iframe"]] },
      {
        runOnly:
          wanted === "all"
            ? ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa", "best-practice"]
            : { type: "rule", values: ["color-contrast"] },
        resultTypes: ["violations"],
      },
    );
    return violations
      .filter(({ impact }) => impact === "serious" || impact === "critical")
      .flatMap(({ id, help, nodes }) =>
        nodes
          .slice(0, 4)
          .map(
            ({ html, failureSummary }) =>
              `${id}: ${help}: ${html.slice(0, 160)} ${failureSummary.split("\n")[1] ?? ""}`,
          ),
      );
  }, rules);
}

// What is clipped, overlaps or reaches out of the page, a line each.
export function misplaced(page: Page): Promise<string[]> {
  return page.evaluate(laidOut);
}
