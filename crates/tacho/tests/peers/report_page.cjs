// Reads a report as a person would: looks, points, selects, switches lines off.
// Usage: report_page.cjs REPORT; TACHO_PEERS_DIR has playwright-core, CHROMIUM the browser.

const assert = require("node:assert/strict");
const path = require("node:path");

const { chromium } = require(
  path.join(process.env.TACHO_PEERS_DIR, "node_modules", "playwright-core"));

const report = `file://${path.resolve(process.argv[2])}`;

async function main() {
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM,
    args: ["--no-sandbox", "--disable-background-networking", "--disable-sync"],
  });
  try {
    for (const colorScheme of ["light", "dark"]) {
      await interactive(browser, colorScheme);
    }
    await narrow(browser);
    await withoutScripts(browser);
    await printed(browser);
  } finally {
    await browser.close();
  }
}

// A page that fails the test when it complains, or asks for anything but itself.
async function open(browser, options) {
  const context = await browser.newContext(options);
  context.setDefaultTimeout(30_000);
  const page = await context.newPage();
  const complaints = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("request", (request) => {
    if (request.url() !== report) complaints.push(`asked for ${request.url()}`);
  });
  await page.goto(report);
  return { context, page, complaints };
}

async function interactive(browser, colorScheme) {
  const viewport = { width: 1280, height: 900 };
  const { context, page, complaints } = await open(browser, { viewport, colorScheme });
  const figures = page.locator("figure[data-chart]");
  const charts = await figures.count();
  assert.ok(charts > 10, `${charts} charts`);
  assert.equal(await page.locator("figure.answers .u-over").count(), charts);

  const figure = figures.first();
  await figure.scrollIntoViewIfNeeded();
  const plot = figure.locator(".u-over");
  const box = await plot.boundingBox();
  const middle = box.y + box.height / 2;

  // Values under the pointer.
  await page.mouse.move(box.x + box.width * 0.5, middle);
  const tip = figure.locator(".tip");
  await tip.waitFor({ state: "visible" });
  assert.match(await tip.innerText(), /s\n[\s\S]*received[\s\S]*\/s/);

  // Dragging selects a stretch, a double click shows all again.
  const before = await canvas(figure);
  await page.mouse.move(box.x + box.width * 0.6, middle);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.8, middle, { steps: 5 });
  await page.mouse.up();
  await page.mouse.move(5, 5);
  await changes(figure, before, "a selection changes nothing");
  const zoomed = await canvas(figure);
  await page.mouse.dblclick(box.x + box.width * 0.5, middle);
  await page.mouse.move(5, 5);
  await changes(figure, zoomed, "a double click changes nothing");

  // The legend switches lines off and on.
  const all = await canvas(figure);
  const button = figure.locator(".legend button").first();
  await button.click();
  assert.equal(await button.getAttribute("aria-pressed"), "false");
  await changes(figure, all, "the legend changes nothing");
  await button.click();
  assert.equal(await button.getAttribute("aria-pressed"), "true");

  assert.deepEqual(complaints, []);
  await context.close();
}

async function narrow(browser) {
  const viewport = { width: 390, height: 844 };
  const { context, page, complaints } = await open(browser, { viewport });
  assert.ok(await page.locator("figure.answers .u-over").first().isVisible());
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(width <= 390, `the page is ${width} pixels broad on a screen of 390`);
  assert.deepEqual(complaints, []);
  await context.close();
}

async function withoutScripts(browser) {
  const { context, page } = await open(browser, { javaScriptEnabled: false });
  const pictures = page.locator("figure .still:not(.compared) svg");
  assert.ok(await pictures.first().isVisible());
  assert.equal(await pictures.count(), await page.locator("figure").count());
  await context.close();
}

async function printed(browser) {
  const { context, page } = await open(browser, {});
  await page.emulateMedia({ media: "print" });
  const figure = page.locator("figure.answers").first();
  assert.ok(await figure.locator(".still svg").first().isVisible());
  assert.ok(!(await figure.locator(".live-plot").isVisible()));
  const pdf = await page.pdf({ format: "A4" });
  assert.ok(pdf.length > 10_000, `${pdf.length} bytes`);
  await context.close();
}

// What a chart shows now.
function canvas(figure) {
  return figure.locator("canvas").evaluate((element) => element.toDataURL());
}

async function changes(figure, before, complaint) {
  for (let attempt = 0; attempt < 300; attempt += 1) {
    if ((await canvas(figure)) !== before) return;
    await new Promise((resolve) => { setTimeout(resolve, 100); });
  }
  assert.fail(complaint);
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
