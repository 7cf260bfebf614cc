// Every screen in both colours, both languages and several widths: nothing unreachable, nothing
// misplaced; pictures are kept in out/pictures.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import type { Browser, Page } from "playwright-core";

import { PICTURES, SKIP, launched, misplaced, opened, settled, unreachable } from "./browser";
import type { View } from "./browser";
import { RUNNING, row } from "./mock/data";
import { mock } from "./mock/server";
import type { Mock, MockOptions } from "./mock/server";

interface Screen {
  name: string;
  path: string;
  // Also in wide windows.
  isTable?: boolean;
  server?: Partial<MockOptions>;
  act?: (page: Page) => Promise<void>;
  // The name of its picture in docs/, which DOCS=1 makes anew.
  doc?: string;
}

const past = (wanted: (index: number) => boolean) => {
  for (let index = 0; ; index += 1)
    if (wanted(index) && row(index).state === "finished") return row(index);
};
const ok = past((index) => row(index).verdict === "ok" && row(index).kind === "run");
const bad = past((index) => row(index).verdict === "generator_bound" && row(index).kind === "run");
const ladder = past((index) => row(index).kind === "ladder");
const others = [0, 1, 2].map(
  (index) => past((at) => at > 10 * index && row(at).scenario === "symmetric").id,
);

const SCREENS: Screen[] = [
  { name: "home", doc: "home", path: "/" },
  { name: "home-empty", path: "/", server: { runs: 0, isBusy: false } },
  { name: "home-error", path: "/", server: { failing: true } },
  { name: "new-1", path: "/new" },
  { name: "new-1-suite", path: "/new?command=suite" },
  { name: "new-2", doc: "new", path: "/new?scenario=symmetric&step=2" },
  {
    name: "new-2-problems",
    path: "/new?scenario=symmetric&step=2&v.payload_size=3&broker=10.0.0.1&thresholds=p99&thresholds=loss%3D%3D0&user=u",
  },
  { name: "new-2-compare", path: "/new?command=compare&scenario=symmetric&step=2" },
  { name: "new-3", path: "/new?scenario=symmetric&step=3&v.target_throughput=60000" },
  { name: "new-all", path: "/new?scenario=symmetric&all=1" },
  { name: "records", doc: "records", path: "/runs", isTable: true },
  {
    name: "records-selected",
    path: "/runs",
    act: async (page) => {
      for (const index of [3, 4])
        await page.locator(".records tbody input[type=checkbox]").nth(index).check();
      await page.locator(".records tbody .popover > button").nth(2).click();
    },
  },
  { name: "records-none", path: "/runs?q=nothing-like-this&verdict=ok" },
  { name: "records-empty", path: "/runs", server: { runs: 0, isBusy: false } },
  { name: "trash", path: "/trash", server: { trashed: 4 } },
  { name: "trash-empty", path: "/trash" },
  {
    name: "trash-ask",
    path: "/trash",
    server: { trashed: 4 },
    act: (page) => page.locator(".page-head .button.danger").click(),
  },
  { name: "run", doc: "result", path: `/runs/${ok.id}` },
  { name: "run-bad", path: `/runs/${bad.id}` },
  { name: "run-ladder", path: `/runs/${ladder.id}`, isTable: true },
  { name: "run-report", path: `/runs/${ok.id}?tab=report` },
  { name: "run-files", path: `/runs/${ok.id}?tab=files` },
  {
    name: "run-files-ladder",
    path: `/runs/${ladder.id}?tab=files`,
    act: (page) => page.locator(".files summary").first().click(),
  },
  { name: "run-settings", path: `/runs/${ok.id}?tab=settings` },
  {
    name: "run-share",
    path: `/runs/${ok.id}`,
    act: (page) =>
      page.locator(".run-actions button", { has: page.locator("path[d^='M10 12.5V3']") }).click(),
  },
  { name: "run-queued", path: "/runs/queued-1" },
  { name: "run-missing", path: "/runs/no-such-run" },
  {
    name: "live",
    doc: "live",
    path: `/runs/${RUNNING.id}`,
    act: async (page) => {
      await page.locator("figure canvas").nth(3).waitFor();
    },
  },
  { name: "compare", doc: "compare", path: `/compare?ids=${others.join(",")}`, isTable: true },
  { name: "compare-empty", path: "/compare" },
  { name: "trends", doc: "trends", path: "/trends?scenario=symmetric", isTable: true },
  { name: "token", path: "/", server: { isAdmitted: false } },
  { name: "unknown", path: "/nowhere" },
];

const VIEWS: View[] = [
  { width: 1280, theme: "light", language: "en" },
  { width: 1280, theme: "dark", language: "en" },
  { width: 390, theme: "light", language: "en" },
  { width: 390, theme: "dark", language: "en" },
  { width: 1280, theme: "dark", language: "zh" },
  { width: 390, theme: "light", language: "zh" },
  { width: 1920, theme: "light", language: "en" },
  { width: 2560, theme: "dark", language: "en" },
];
const USUAL: MockOptions = { runs: 10_000, isBusy: true };
// Of one screen or one view only, while working on it: ONLY=records VIEW=390.
const ONLY = process.env["ONLY"];
const VIEW = process.env["VIEW"];
const DOCS = process.env["DOCS"] !== undefined;

let browser: Browser;
const servers = new Map<string, Mock>();

async function serverOf(screen: Screen): Promise<Mock> {
  const options = { ...USUAL, ...screen.server };
  const key = JSON.stringify(options);
  const known = servers.get(key) ?? (await mock(options));
  servers.set(key, known);
  return known;
}

before(async () => {
  if (SKIP === false) browser = await launched();
});
after(async () => {
  await browser?.close();
  for (const server of servers.values()) await server.close();
});

for (const view of VIEWS) {
  const name = `${view.width}-${view.theme}-${view.language}`;
  if (VIEW !== undefined && !name.includes(VIEW)) continue;
  test(`screens ${name}`, { skip: SKIP }, async (t) => {
    const errors: string[] = [];
    const context = await opened(browser, view, errors);
    const page = await context.newPage();
    for (const screen of SCREENS) {
      if (ONLY !== undefined && !screen.name.includes(ONLY)) continue;
      if (view.width >= 1920 && screen.isTable !== true) continue;
      await t.test(screen.name, async () => {
        const server = await serverOf(screen);
        await page.goto(server.address + screen.path);
        await settled(page);
        await screen.act?.(page);
        await settled(page);
        await page.screenshot({ path: `${PICTURES}/${screen.name}-${name}.png`, fullPage: true });
        if (DOCS && screen.doc !== undefined && name === "1280-light-en") {
          await page.evaluate(() => scrollTo(0, 0));
          await page.screenshot({ path: `../docs/console-${screen.doc}.png` });
        }
        assert.deepEqual(await misplaced(page), []);
        assert.deepEqual(await unreachable(page), []);
        assert.deepEqual(errors.splice(0), []);
      });
    }
    await context.close();
  });
}
