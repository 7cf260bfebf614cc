// Drives the pages in headless Chromium: live|actions|ladder|past <url> [folder for pictures].
//
// `live` watches a run until its charts have values, looks at it in two widths, in light and dark,
// and stops the run with the page's button. `actions` waits until clients that were dropped are back, and
// stops the run. `ladder` waits until all steps have ended, opens the
// report and closes the page. `past` follows the console's records to a report. Errors in the browser's
// console, or a page that is wider than the screen, fail.

const path = require("path");
const modules = path.join(process.env.TACHO_PEERS_DIR, "node_modules");
const { chromium } = require(path.join(modules, "playwright-core"));

const PATIENCE_MS = 50_000;
const WIDTHS = [[1280, 900], [390, 844]];
const SCHEMES = ["light", "dark"];

function check(holds, complaint) {
  if (!holds) throw new Error(complaint);
}

// Every width and scheme: nothing may reach beyond the screen.
async function lookAt(page, name, pictures) {
  for (const [width, height] of WIDTHS) {
    for (const scheme of SCHEMES) {
      await page.setViewportSize({ width, height });
      await page.emulateMedia({ colorScheme: scheme });
      // The charts follow with the next frames.
      await page.evaluate(() => new Promise((done) => {
        requestAnimationFrame(() => requestAnimationFrame(done));
      }));
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      check(wide <= width, `${name}: ${wide} pixels wide on a screen of ${width}`);
      if (pictures) {
        await page.waitForTimeout(1500);
        const file = path.join(pictures, `${name}-${width}-${scheme}.png`);
        await page.screenshot({ path: file, fullPage: true });
      }
    }
  }
}

// Values that are drawn, by the title of the chart.
function drawn(page) {
  return page.evaluate(() => Object.fromEntries(
    [...document.querySelectorAll("figure")].map((figure) => [
      figure.querySelector("figcaption").textContent,
      Number(figure.querySelector(".uplot")?.getAttribute("data-points") ?? 0),
    ])));
}

// Waits until each of these charts has `values` more values than `before`.
async function waitForCharts(page, titles, values, before = {}) {
  const deadline = Date.now() + PATIENCE_MS;
  let last = {};
  while (Date.now() < deadline) {
    last = await drawn(page);
    if (titles.every((title) => (last[title] ?? 0) >= (before[title] ?? 0) + values)) return last;
    await page.waitForTimeout(200);
  }
  throw new Error(`charts have too few values: ${JSON.stringify(last)}`);
}

async function live(page, pictures) {
  const titles = [
    "Messages per second", "End-to-end delivery", "Response time, mean", "Failures per second",
    "Virtual users", "Bytes per second of the clients", "CPU", "Memory", "Network", "Load",
  ];
  const first = await waitForCharts(page, titles, 3);
  const later = await waitForCharts(page, titles, 3, first);
  // The legend switches lines off.
  const button = page.locator("figure").first().locator(".legend button").first();
  await button.click();
  check(await button.getAttribute("aria-pressed") === "false", "the legend's button does nothing");
  await button.click();
  check(/^measure$/.test(await page.locator("#phase").textContent()), "it is not measuring");
  await lookAt(page, "live", pictures);

  // A reloaded page shows the whole run again.
  await page.reload();
  const again = await waitForCharts(page, titles, 1);
  check(again["Virtual users"] >= later["Virtual users"], "the history is not replayed");

  const stop = page.locator("#stop");
  await stop.click();
  await stop.click();
  const verdict = page.locator("#verdict");
  await verdict.waitFor({ state: "visible", timeout: PATIENCE_MS });
  const said = await verdict.textContent();
  check(said.includes("aborted"), `the verdict is ${said}`);
  await lookAt(page, "ended", pictures);
}

async function actions(page, pictures) {
  const rows = page.locator("#actions tbody tr");
  // The newest is first.
  await rows.nth(1).locator("td", { hasText: "5 of 5 back" }).waitFor({ timeout: PATIENCE_MS });
  check((await rows.first().textContent()).includes("all of storm break off"), "what has happened?");
  await page.locator('.uplot[data-marks="2"]').first().waitFor({ timeout: PATIENCE_MS });
  await lookAt(page, "actions", pictures);
  await page.reload();
  await rows.nth(1).waitFor({ timeout: PATIENCE_MS });
  const stop = page.locator("#stop");
  await stop.click();
  await stop.click();
  await page.locator("#verdict").waitFor({ state: "visible", timeout: PATIENCE_MS });
}

async function ladder(page, pictures, url) {
  await page.locator("#title", { hasText: "step 2 of 2" }).waitFor({ timeout: PATIENCE_MS });
  const link = page.locator("#verdict a", { hasText: "Open the report" });
  await link.waitFor({ timeout: PATIENCE_MS });
  check(await page.locator("#steps tbody tr").count() >= 2, "there are not two steps");
  await waitForCharts(page, ["Messages per second", "Virtual users"], 4);
  await lookAt(page, "ladder", pictures);
  await link.click();
  await page.waitForURL(/\/run\/report\.html$/, { timeout: PATIENCE_MS });
  check((await page.locator("h1").textContent()).includes("symmetric"), "that is no report");
  await page.goto(url);
  const close = page.locator("#stop", { hasText: "Close" });
  await close.click();
  await page.locator("#notice", { hasText: "Closed" }).waitFor({ timeout: PATIENCE_MS });
}

async function past(page, pictures, url) {
  // The address that was opened first has left its token with the browser.
  await page.goto(new URL("/runs", url).href);
  await page.locator("table.records tbody tr").nth(1).waitFor();
  await lookAt(page, "past", pictures);
  await page.locator("a.run-name[href*='-symmetric']").click();
  await page.locator("nav.tabs").getByRole("link", { name: "Report" }).click();
  const title = page.frameLocator("iframe.report-frame").locator("h1");
  check((await title.textContent()).includes("symmetric"), "that is no report");
}

async function main() {
  const [what, url, pictures] = process.argv.slice(2);
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM,
    args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
  });
  const complaints = [];
  try {
    const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
    page.setDefaultTimeout(PATIENCE_MS);
    page.on("console", (message) => {
      if (["error", "warning"].includes(message.type())) complaints.push(message.text());
    });
    page.on("pageerror", (error) => complaints.push(String(error)));
    await page.goto(url);
    await { live, actions, ladder, past }[what](page, pictures, url);
    check(complaints.length === 0, `the browser complains: ${complaints.join("; ")}`);
  } finally {
    await browser.close();
  }
  console.log("all is well");
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
