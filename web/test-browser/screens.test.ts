// Every screen in both colours, both languages and several widths: nothing unreachable, nothing
// misplaced; pictures are kept in out/pictures.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import type { Browser, Page } from "playwright-core";

import { PICTURES, SKIP, launched, misplaced, opened, settled, sizeOf, unreachable } from "./browser";
import type { View } from "./browser";
import { AGENTS, RUNNING, row } from "./mock/data";
import { mqtt } from "./mock/mqtt";
import { mock } from "./mock/server";
import type { Mock, MockOptions } from "./mock/server";

interface Screen {
  name: string;
  path: string;
  // Also in a window of 1920 pixels.
  isTable?: boolean;
  server?: Partial<MockOptions>;
  // Once, before it is opened.
  before?: (page: Page) => Promise<unknown>;
  act?: (page: Page) => Promise<void>;
  // The name of its picture in docs/, which DOCS=1 makes anew.
  doc?: string;
  // The part of the page that it shows, where that is not the first window of it.
  docOf?: string;
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

// A plan that reads two files, of which one is there.
async function uploadFiles(page: Page): Promise<void> {
  const file = (name: string, text: string) => ({
    name,
    mimeType: "text/plain",
    buffer: Buffer.from(text),
  });
  const rows = Array.from({ length: 240 }, (_, row) => `meter-${row},user-${row},secret-${row}\n`);
  await page
    .locator("input[type=file]")
    .setInputFiles([
      file("plan.jmx", "x"),
      file("users.csv", `client_id,username,password\n${rows.join("")}`),
      file("places.csv", "place,height\nBerlin,34\nKunming\n"),
    ]);
  await page.locator(".files-used > li").nth(2).waitFor();
  await page.locator(".needed .missing").waitFor({ state: "detached" });
  await page.locator(".first-lines").first().evaluate((fold) => fold.setAttribute("open", ""));
}

const withHistory = (page: Page) => page.locator(".history path").first().waitFor({ state: "attached" });

// Two connections of which one sends to the other, and one that is refused.
async function withConnections(page: Page): Promise<void> {
  const connect = async (clientId: string) => {
    const form = page.locator(".connect");
    if ((await form.getAttribute("open")) === null) await form.locator("summary").click();
    await form.locator("input[type=text]").first().fill(clientId);
    await form.locator("[type=submit]").click();
    const card = page.locator(`.connection[aria-label="${clientId}"]`);
    await card.waitFor();
    return card;
  };
  await connect("banned-1");
  const sends = await connect("gateway-7");
  const reads = await connect("dashboard");
  await reads.locator(".chip.good").waitFor();
  for (const filter of ["meters/#", "secrets/#"]) {
    await reads.locator(".subscribe input").fill(filter);
    await reads.locator(".subscribe .button").click();
  }
  await reads.locator(".refused").waitFor();
  const payloads = ['{"celsius": 21.5, "humidity": 0.43}', "on", "x".repeat(90), "42"];
  for (const [index, payload] of payloads.entries()) {
    await sends.locator("input[type=text]").nth(1).fill(`meters/building-${index}/temperature`);
    await sends.locator("textarea").fill(payload);
    await sends.locator(".button.primary").click();
  }
  await reads.locator(".message-list > li").nth(3).waitFor();
}

const SCREENS: Screen[] = [
  { name: "home", doc: "home", path: "/" },
  { name: "home-ladder", path: "/", server: { isBusy: "ladder" } },
  {
    name: "home-held",
    path: "/",
    server: { isBusy: false, heldBy: "tacho run symmetric (process 4711, since 04:00)" },
  },
  { name: "home-empty", path: "/", server: { runs: 0, isBusy: false } },
  { name: "home-error", path: "/", server: { failing: true } },
  { name: "new-1", path: "/new" },
  { name: "new-1-suite", path: "/new?command=suite" },
  { name: "new-1-files", doc: "files", docOf: "[data-field=upload]", path: "/new?files=1", act: uploadFiles },
  {
    name: "new-2-plan",
    path: "/new?files=1",
    act: async (page) => {
      await uploadFiles(page);
      await page.locator(".form-foot .primary").click();
      await page.locator("[data-field=rows]").waitFor();
    },
  },
  {
    name: "new-2-ladder",
    path: "/new?command=ladder&scenario=symmetric&step=2&steps=target_throughput%3D5k..30k%3A5k&stopWhen=cpu%3E95%25",
  },
  { name: "new-2-capacity", path: "/new?command=capacity&scenario=symmetric&step=2" },
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
  { name: "agents", path: "/agents", server: { agents: AGENTS }, isTable: true },
  { name: "agents-empty", path: "/agents", server: { agents: [] } },
  { name: "agents-none", path: "/agents" },
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
  {
    name: "run-ladder-step",
    path: `/runs/${ladder.id}?step=3`,
    act: async (page) => {
      await page.locator(".step-charts figure canvas").nth(3).waitFor();
    },
  },
  {
    name: "run-course",
    path: `/runs/${ok.id}?tab=course`,
    act: async (page) => {
      await page.locator("figure canvas").nth(3).waitFor();
    },
  },
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
  { name: "broker", doc: "broker", path: "/broker", isTable: true, act: withHistory },
  { name: "broker-day", path: "/broker?span=day", act: withHistory },
  { name: "broker-gone", path: "/broker", server: { broker: { isGone: true } } },
  { name: "broker-none", path: "/broker", server: { broker: null } },
  { name: "broker-clients", doc: "broker-clients", path: "/broker/clients", isTable: true },
  { name: "broker-clients-empty", path: "/broker/clients", server: { broker: { isEmpty: true } } },
  { name: "broker-client", path: "/broker/clients/meter-00006" },
  { name: "broker-client-missing", path: "/broker/clients/no-such-client" },
  {
    name: "broker-client-kick",
    path: "/broker/clients/meter-00006",
    act: (page) => page.locator(".client-title .danger").first().click(),
  },
  {
    name: "broker-client-ban",
    path: "/broker/clients/meter-00006",
    act: (page) => page.locator(".client-title .danger").nth(1).click(),
  },
  {
    name: "broker-topics",
    path: "/broker/topics?topic=buildings%2F1%2Ffloors%2F2%2Ftemperature&filter=buildings%2F%2B%2Ffloors%2F%23",
    isTable: true,
  },
  { name: "broker-topics-empty", path: "/broker/topics" },
  { name: "broker-retained", path: "/broker/retained?filter=buildings%2F1%2F%23" },
  {
    name: "broker-retained-message",
    path: "/broker/retained",
    act: async (page) => {
      await page.locator(".broker-table .topic").first().click();
      await page.locator("dialog pre").waitFor();
    },
  },
  { name: "broker-groups", path: "/broker/groups?group=%24share%2Fworkers%2Fjobs%2F%23" },
  {
    name: "broker-bridges",
    path: "/broker/bridges",
    act: (page) => page.locator(".bridge summary").first().click(),
  },
  {
    name: "broker-bridge-form",
    path: "/broker/bridges",
    act: async (page) => {
      await page.locator(".page-broker .filters .button").click();
      await page.locator("dialog input[type=text]").nth(0).fill("site");
      await page.locator("dialog input[type=text]").nth(1).fill("mqtts://b.example:8883");
      await page.locator(".bridge-rule input").first().fill("sensors/#");
      await page.locator("dialog .buttons .button").nth(1).click();
      await page.locator(".trial").waitFor();
    },
  },
  {
    name: "broker-drain",
    path: "/broker",
    act: async (page) => {
      await page.locator(".maintenance .danger").click();
      await page.locator("dialog input").first().waitFor();
    },
  },
  {
    name: "broker-drained",
    path: "/broker",
    server: { runs: 1 },
    act: async (page) => {
      await page.locator(".maintenance, .notice.drain").first().waitFor();
      // The data of the server stay as they are from view to view.
      if ((await page.locator(".notice.drain").count()) === 0) {
        await page.locator(".maintenance .danger").click();
        await page.locator("dialog .danger").click();
      }
      await page.locator(".notice.drain").waitFor();
      const field = page.locator(".backup input");
      await field.fill("/var/backups/tacho/monday");
      await page.locator(".backup .button").click();
      await page.locator(".backup code").waitFor();
    },
  },
  { name: "broker-bridges-empty", path: "/broker/bridges", server: { broker: { isEmpty: true } } },
  { name: "broker-access", path: "/broker/access", isTable: true },
  { name: "broker-access-viewer", path: "/broker/access", server: { role: "viewer" } },
  { name: "broker-access-why", path: "/broker/access?client=meter-00006&topic=in%2F1" },
  { name: "broker-config", path: "/broker/config", isTable: true },
  {
    name: "broker-events",
    path: "/broker/events?events=connected%2Cdisconnected",
    act: (page) => page.locator(".broker-table tbody tr").nth(5).waitFor(),
  },
  { name: "broker-events-quiet", path: "/broker/events", server: { broker: { isEmpty: true } } },
  { name: "broker-trace", path: "/broker/trace" },
  {
    name: "broker-trace-running",
    path: "/broker/trace?client_id=meter-00006",
    act: async (page) => {
      await page.locator(".trace-form select").first().selectOption("text");
      await page.locator(".page-broker .button.primary").click();
      await page.locator(".broker-table tbody tr").nth(4).waitFor();
    },
  },
  { name: "broker-trace-viewer", path: "/broker/trace", server: { role: "viewer" } },
  { name: "broker-websocket", path: "/broker/websocket", isTable: true },
  { name: "broker-websocket-none", path: "/broker/websocket", server: { broker: { isEmpty: true } } },
  {
    name: "broker-websocket-talk",
    doc: "broker-websocket",
    path: "/broker/websocket",
    isTable: true,
    before: mqtt,
    act: withConnections,
  },
  { name: "broker-alarms", path: "/broker/alarms", isTable: true },
  { name: "broker-alarms-none", path: "/broker/alarms", server: { broker: { isEmpty: true } } },
  { name: "token", path: "/", server: { isAdmitted: false } },
  { name: "unknown", path: "/nowhere" },
];

// A page is opened once for each look, and then shown in windows of several widths.
interface Look {
  theme: View["theme"];
  language: View["language"];
  widths: { width: number; rules?: "all" | "colours"; onlyTables?: boolean }[];
}

const LOOKS: Look[] = [
  {
    theme: "light",
    language: "en",
    widths: [
      { width: 1280, rules: "all" },
      { width: 390, rules: "all" },
      { width: 1920, onlyTables: true },
    ],
  },
  {
    theme: "dark",
    language: "en",
    widths: [{ width: 1280, rules: "colours" }, { width: 390 }, { width: 2560 }],
  },
  { theme: "dark", language: "zh", widths: [{ width: 1280 }] },
  { theme: "light", language: "zh", widths: [{ width: 390, rules: "all" }] },
];
// As many at a time as a machine of two cores carries.
const AT_A_TIME = 2;
const USUAL: MockOptions = { runs: 10_000, isBusy: true };
// Of one screen or one view only, while working on it: ONLY=records VIEW=390.
const ONLY = process.env["ONLY"];
const VIEW = process.env["VIEW"];
const DOCS = process.env["DOCS"] !== undefined;

let browser: Browser;
const servers = new Map<string, Promise<Mock>>();

function serverOf(screen: Screen): Promise<Mock> {
  const options = { ...USUAL, ...screen.server };
  const key = JSON.stringify(options);
  const known = servers.get(key) ?? mock(options);
  servers.set(key, known);
  return known;
}

before(async () => {
  if (SKIP === false) browser = await launched();
});
after(async () => {
  await browser?.close();
  for (const server of servers.values()) await (await server).close();
});

// Whether only some are wanted, and this is none of them.
function isLeftOut(look: string, screen: Screen, onlyTables = false): boolean {
  return (
    (VIEW !== undefined && !look.includes(VIEW)) ||
    (ONLY !== undefined && !screen.name.includes(ONLY)) ||
    (onlyTables && screen.isTable !== true)
  );
}

async function check(page: Page, screen: Screen, look: Look, errors: string[]): Promise<void> {
  const server = await serverOf(screen);
  let isOpen = false;
  for (const { width, rules, onlyTables } of look.widths) {
    const name = `${width}-${look.theme}-${look.language}`;
    if (isLeftOut(name, screen, onlyTables)) continue;
    await page.setViewportSize(sizeOf(width));
    // What a visitor has opened may close when the window changes.
    if (!isOpen || screen.act !== undefined) {
      if (!isOpen) await screen.before?.(page);
      await page.goto(server.address + screen.path);
      await settled(page);
      await screen.act?.(page);
    }
    isOpen = true;
    await settled(page);
    // What the bar above covers cannot be pressed, wherever a page was scrolled to.
    await page.evaluate(() => scrollTo(0, 0));
    const path = `${PICTURES}/${screen.name}-${name}.jpg`;
    await page.screenshot({ path, type: "jpeg", quality: 85, fullPage: true });
    if (DOCS && screen.doc !== undefined && name === "1280-light-en") {
      const shown = screen.docOf === undefined ? page : page.locator(screen.docOf);
      await shown.screenshot({ path: `../docs/console-${screen.doc}.png` });
    }
    assert.deepEqual(await misplaced(page), [], name);
    if (rules !== undefined) assert.deepEqual(await unreachable(page, rules), [], name);
    assert.deepEqual(errors.splice(0), [], name);
  }
}

test("screens", { skip: SKIP, concurrency: AT_A_TIME }, async (t) => {
  const looks = LOOKS.map((look) =>
    t.test(`${look.theme}-${look.language}`, async (of) => {
      const errors: string[] = [];
      const { theme, language } = look;
      const context = await opened(browser, { width: 1280, theme, language }, errors);
      const page = await context.newPage();
      for (const screen of SCREENS) {
        const names = look.widths.map(({ width }) => `${width}-${theme}-${language}`);
        if (names.every((name) => isLeftOut(name, screen))) continue;
        await of.test(screen.name, () => check(page, screen, look, errors));
      }
      await context.close();
    }),
  );
  await Promise.all(looks);
});
