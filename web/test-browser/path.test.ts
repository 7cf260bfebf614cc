// What people do with the console, step by step.

import assert from "node:assert/strict";
import { test } from "node:test";

import type { Page } from "playwright-core";

import { SKIP, settled } from "./browser";
import { RUNNING, row } from "./mock/data";
import type { Mock } from "./mock/server";
import { staged } from "./stage";

let server: Mock;
let page: Page;
const renewed = staged({ runs: 10_000, isBusy: true }, (stage) => {
  ({ server, page } = stage);
});

const options = { skip: SKIP };

test("a test is configured in three steps and started", options, async () => {
  await page.goto(`${server.address}/`);
  await page.getByRole("link", { name: "New test" }).click();
  await page.getByRole("radio", { name: /One to one/ }).check();
  await page.getByRole("button", { name: "Next" }).click();
  await page.getByLabel("Payload size").fill("3");
  const wrong = page.locator("[data-field='variables.payload_size'] .field-error");
  await wrong.waitFor();
  assert.match(await wrong.innerText(), /at least 24/);
  assert.equal(await page.getByLabel("Payload size").getAttribute("aria-invalid"), "true");
  await page.getByRole("button", { name: "Next" }).click();
  assert.ok(await page.getByRole("button", { name: "Start test" }).isDisabled());
  await page.getByRole("button", { name: "Show the field" }).click();
  await page.waitForFunction(
    () => document.activeElement?.closest("[data-field='variables.payload_size']") !== null,
  );
  await page.getByLabel("Payload size").fill("512");
  await wrong.waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Add: Thresholds" }).click();
  await page.getByRole("textbox", { name: "Thresholds 1" }).fill("p99<10ms");
  await page.getByLabel("Name", { exact: true }).fill("my test");
  await page.getByRole("button", { name: "Next" }).click();
  await page.getByText("--var payload_size=512").waitFor();
  await page.getByRole("button", { name: "Start test" }).click();
  await page.waitForURL("**/runs/started-1");
  await page.getByText("The test waits at position 3.").waitFor();
  assert.deepEqual(server.requests, [
    {
      command: "run",
      variables: { payload_size: "512" },
      scenario: "symmetric",
      broker: "builtin",
      name: "my test",
      thresholds: ["p99<10ms"],
    },
  ]);
});

test("the form is in the address and survives a reload and the way back", options, async () => {
  await page.goto(`${server.address}/new?scenario=symmetric&step=2`);
  await page.getByLabel("Publishers").fill("77");
  await page.waitForURL(/v\.publishers=77/);
  await page.reload();
  assert.equal(await page.getByLabel("Publishers").inputValue(), "77");
  await page.getByRole("button", { name: "Next" }).click();
  await page.getByRole("heading", { name: "What it will do" }).waitFor();
  await page.goBack();
  assert.equal(await page.getByLabel("Publishers").inputValue(), "77");
});

const file = (name: string, text = "x") => ({
  name,
  mimeType: "text/plain",
  buffer: Buffer.from(text),
});

test("a plan names its missing data, shows what it holds, and is started", options, async () => {
  await page.goto(`${server.address}/new?files=1`);
  const input = page.locator("input[type=file]");
  await input.setInputFiles([file("plan.jmx"), file("meters.csv", "a,b\n1\n")]);
  const used = page.locator(".files-used");
  await used.locator(".needed .missing").getByText("users.csv").waitFor();
  await used.getByText("meters.csv:2: 1 cell, the first line has 2").waitFor();
  await used.getByText("plan.jmx does not read this file.").waitFor();
  await page.getByRole("button", { name: "Remove: meters.csv" }).click();
  await input.setInputFiles([file("users.csv", "name,password\nu1,hunter1\nu2,hunter2\n")]);
  await used.locator(".needed .missing").waitFor({ state: "detached" });
  await used.getByText("2 rows").waitFor();
  await used.getByText("2 columns: name, password").waitFor();
  await used.getByText("First lines").click();
  await used.getByRole("cell", { name: "u2" }).waitFor();
  assert.ok(!(await used.innerText()).includes("hunter"));
  await page.getByRole("button", { name: "Next" }).click();
  await page.getByLabel("Virtual users of Publishers").fill("250");
  await page.getByLabel("Load machines").fill("4");
  await page.getByRole("radio", { name: "Until the end" }).check();
  await page.getByRole("radio", { name: "Split" }).check();
  await page.waitForURL(/rows=split/);
  await page.reload();
  assert.equal(await page.getByLabel("Virtual users of Publishers").inputValue(), "250");
  await page.getByRole("button", { name: "Next" }).click();
  await page.getByRole("button", { name: "Start test" }).click();
  await page.waitForURL("**/runs/started-1");
  const [request] = server.requests;
  const { upload, data, machines, loops, rows } = request!;
  assert.deepEqual([upload, data, machines, loops, rows], ["u1", ["u3"], 4, "forever", "split"]);
  assert.deepEqual(request!.virtual_users, { Publishers: 250 });
});

test("a name of the BifroMQ report has its variables", options, async () => {
  await page.goto(`${server.address}/new`);
  await page.locator("[data-field=scenario] input[type=text]").fill("1k_1k_qos0_p32_1mps");
  await page.getByRole("button", { name: "Next" }).click();
  await page.getByLabel("Publishers").fill("20");
  await page.getByRole("button", { name: "Next" }).click();
  await page.getByText("tacho run 1k_1k_qos0_p32_1mps --var publishers=20").waitFor();
});

test("a step is kept when the address is about to be written", options, async () => {
  await page.goto(`${server.address}/new?scenario=symmetric`);
  await page.evaluate(() => {
    const state = globalThis as unknown as { held: (() => void)[]; setTimeout: unknown };
    const { setTimeout } = globalThis;
    state.held = [];
    state.setTimeout = (work: () => void, after: number) =>
      after === 350 ? state.held.push(work) : setTimeout(work, after);
  });
  await page.locator("[data-field=scenario] input[type=text]").fill("1k_1k_qos0_p32_1mps");
  await page.waitForFunction(() => (globalThis as unknown as { held: unknown[] }).held.length > 0);
  await page.getByRole("button", { name: "Next" }).evaluate((button: HTMLElement) => {
    button.click();
    for (const work of (globalThis as unknown as { held: (() => void)[] }).held) work();
  });
  await page.getByLabel("Publishers").waitFor();
  assert.equal(new URL(page.url()).searchParams.get("step"), "2");
});

test("the start page shows how far a ladder is, and its verdict so far", options, async () => {
  server = await renewed({ runs: 20, isBusy: "ladder" });
  await page.goto(server.address);
  const running = page.locator(".running");
  await running.getByText("step 3 of 8").waitFor();
  await running.getByText(/measure, phase 5 of 7/).waitFor();
  await running.getByText("1 threshold is missed right now").waitFor();
  for (const verdict of ["ok", "not steady"])
    await running.locator(".chip", { hasText: verdict }).waitFor();
  const share = Number(await running.locator("progress").getAttribute("value"));
  assert.ok(share > 2 / 8 && share < 3 / 8, `${share}`);
  await page.locator(".queue li").nth(1).getByText("persistent").waitFor();
});

test("the keyboard reaches everything that can be pressed or filled in", options, async () => {
  for (const path of [
    "/",
    "/new",
    "/new?scenario=symmetric&step=2&broker=mqtt%3A%2F%2Fa%3A1&user=u&ca=c",
    "/new?scenario=symmetric&step=3",
    "/runs?scenario=bridge&starred=1",
    "/trends?scenario=symmetric",
  ]) {
    await page.goto(server.address + path);
    await settled(page);
    assert.deepEqual(await unfocused(page), [], path);
  }
});

// What the Tab key does not come to.
async function unfocused(shown: Page): Promise<string[]> {
  const count = await shown.evaluate(() => {
    const state = globalThis as unknown as { seen: Set<EventTarget> };
    state.seen = new Set();
    addEventListener("focusin", ({ target }) => target !== null && state.seen.add(target));
    return document.querySelectorAll("a[href], button, input, select, textarea, summary").length;
  });
  for (let press = 0; press < count + 10; press += 1) await shown.keyboard.press("Tab");
  return shown.evaluate(() => {
    const { seen } = globalThis as unknown as { seen: Set<EventTarget> };
    const all = [
      ...document.querySelectorAll<HTMLElement>(
        "a[href], button, input, select, textarea, summary, [tabindex='0']",
      ),
    ];
    // Of radio buttons the Tab key comes to the chosen one; arrows lead to the others.
    const isAlone = (element: HTMLElement) => {
      if (!(element instanceof HTMLInputElement) || element.type !== "radio") return true;
      const group = all.filter(
        (other) => other instanceof HTMLInputElement && other.name === element.name,
      ) as HTMLInputElement[];
      return element.checked || !group.some(({ checked }) => checked);
    };
    const isReached = (element: HTMLElement) =>
      seen.has(element) ||
      (element instanceof HTMLInputElement &&
        element.type === "radio" &&
        all.some(
          (other) =>
            other instanceof HTMLInputElement && other.name === element.name && seen.has(other),
        ));
    return all
      .filter((element) => element.checkVisibility() && !element.matches(":disabled"))
      .filter((element) => isAlone(element) && !isReached(element))
      .map((element) => element.outerHTML.slice(0, 120));
  });
}

test(
  "a run is watched, a span of time is chosen for all charts, and its record follows",
  options,
  async () => {
    await page.goto(`${server.address}/runs/${RUNNING.id}`);
    await page.locator("figure canvas").nth(2).waitFor();
    await page
      .getByText(/missed in \d of \d+ s/)
      .first()
      .waitFor();
    await page.locator("[data-levels='1']").nth(1).waitFor({ state: "attached" });
    const over = page.locator(".u-over").first();
    const isChosen = page.getByText(/^Charts show/);
    // What is above may still move the chart away from under the pointer.
    for (let time = 0; time < 5 && !(await isChosen.isVisible()); time += 1) {
      await over.scrollIntoViewIfNeeded();
      const box = (await over.boundingBox())!;
      await page.mouse.move(box.x + box.width * 0.3, box.y + 40);
      await page.mouse.down();
      await page.mouse.move(box.x + box.width * 0.6, box.y + 40, { steps: 4 });
      await page.mouse.up();
      await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(resolve)));
    }
    await isChosen.waitFor();
    await page.getByRole("button", { name: "Whole time" }).click();
    await page.getByText(/^Charts show/).waitFor({ state: "detached" });
    await page.getByText("Values as a table").first().click();
    await page.locator(".values table tbody tr").nth(20).waitFor({ state: "attached" });
    server.endRun();
    await page.getByRole("link", { name: "Result" }).waitFor();
    await page.getByRole("heading", { name: "ok" }).waitFor();
    await page.getByRole("link", { name: "Course" }).click();
    await page.locator("figure canvas").first().waitFor({ state: "visible" });
  },
);

test("the charts of a run that has ended are there after a reload, too", options, async () => {
  const ended = server.records.of("finished").find(({ kind }) => kind === "run")!;
  await page.goto(`${server.address}/runs/${ended.id}`);
  await page.getByRole("link", { name: "Course" }).click();
  await page.waitForURL(/tab=course/);
  await page.locator("figure canvas").nth(2).waitFor();
  await page.reload();
  await page.locator("figure canvas").nth(2).waitFor();
  await page.getByText("Values as a table").first().click();
  assert.ok((await page.locator(".values table tbody tr").count()) > 20);
});

test("the charts of a step are chosen in its table, and are in the address", options, async () => {
  const past = Array.from({ length: 200 }, (_, index) => row(index));
  const ladder = past.find(({ kind, state }) => kind === "ladder" && state === "finished")!;
  await page.goto(`${server.address}/runs/${ladder.id}`);
  await page.getByRole("button", { name: "Charts of 5,000 msg/s" }).click();
  await page.waitForURL(/step=2/);
  const charts = page.locator(".step-charts");
  await charts.getByRole("heading", { name: "Charts of 5,000 msg/s" }).waitFor();
  await charts.locator("figure canvas").nth(2).waitFor();
  await page.reload();
  await charts.locator("figure canvas").nth(2).waitFor();
  await page.getByRole("button", { name: "Charts of 10,000 msg/s" }).click();
  await charts.getByRole("heading", { name: "Charts of 10,000 msg/s" }).waitFor();
  await charts.getByRole("button", { name: "Close" }).click();
  await charts.waitFor({ state: "detached" });
  assert.equal(new URL(page.url()).search, "");
});

test("what is wrong is said in the language of the viewer, without a reload", options, async () => {
  const draft = "scenario=symmetric&step=2&v.payload_size=3&thresholds=p99";
  await page.goto(`${server.address}/new?${draft}`);
  const wrong = page.locator("[data-field='variables.payload_size'] .field-error");
  await page.locator("[data-field='thresholds[0]'] .field-error").getByText(/a condition is/).waitFor();
  assert.match(await wrong.innerText(), /at least 24 bytes/);
  await page.getByRole("button", { name: "Language: 中文" }).click();
  await page.locator("[data-field='thresholds[0]'] .field-error").getByText(/条件由/).waitFor();
  assert.match(await wrong.innerText(), /至少为 24 字节/);
});

test("a run is compared with the baseline of its scenario", options, async () => {
  const ended = server.records.of("finished")[0]!;
  await page.goto(`${server.address}/runs/${ended.id}`);
  await page.locator(".run-actions .popover > button").click();
  await page.getByRole("button", { name: "Compare with the baseline" }).click();
  await page.waitForURL((url) => url.pathname === "/compare");
  const [first, second] = new URL(page.url()).searchParams.get("ids")!.split(",");
  assert.equal(second, ended.id);
  assert.equal(server.records.find(first!)?.scenario, ended.scenario);
  await page.locator(".compared").waitFor();
});

test("a run from elsewhere is repeated with changes, its scenario as an upload", options, async () => {
  const ended = server.records.of("finished")[0]!;
  await page.goto(`${server.address}/runs/${ended.id}`);
  await page.locator(".run-actions .popover > button").click();
  await page.getByRole("button", { name: "Repeat with changes" }).click();
  await page.waitForURL(/new\?.*upload=u9/);
  await page.getByText("The form has no field for --timing spin.").waitFor();
  await page.getByRole("button", { name: "Next" }).click();
  await page.getByRole("button", { name: "Start test" }).click();
  await page.waitForURL("**/runs/started-1");
  const [request] = server.requests;
  assert.deepEqual([request?.upload, request?.thresholds], ["u9", ["e2e_p99<10ms"]]);
});

test("the files of a run, and of its steps, are opened and downloaded", options, async () => {
  const past = Array.from({ length: 200 }, (_, index) => row(index));
  const ladder = past.find(({ kind, state }) => kind === "ladder" && state === "finished")!;
  await page.goto(`${server.address}/runs/${ladder.id}`);
  await page.getByRole("link", { name: "Files" }).click();
  await page.waitForURL(/tab=files/);
  const step = page.locator(".files details").first();
  assert.equal(await step.getByRole("link", { name: "report.html", exact: true }).isVisible(), false);
  await step.locator("summary").click();
  const saved = page.waitForEvent("download");
  await step.getByRole("link", { name: /^Download .*summary\.json$/ }).click();
  assert.equal((await saved).suggestedFilename(), `${ladder.id}-summary.json`);
  assert.match((await saved).url(), /\/files\/steps\/01-target_throughput%3D5000\/summary\.json$/);
});

test("a run is stopped only when that is confirmed", options, async () => {
  await page.goto(`${server.address}/runs/${RUNNING.id}`);
  await page.getByRole("button", { name: "Stop" }).click();
  await page.getByRole("button", { name: "Keep it running" }).click();
  assert.deepEqual(server.changes, []);
  await page.getByRole("button", { name: "Stop" }).click();
  await page.locator("dialog").getByRole("button", { name: "Stop" }).click();
  await page.getByRole("heading", { name: "ok" }).waitFor();
  assert.deepEqual(server.changes, [`POST runs/${RUNNING.id}/stop`]);
});

test(
  "records are searched, sorted, paged, starred and deleted with a way back",
  options,
  async () => {
    await page.goto(`${server.address}/runs`);
    await settled(page);
    await page.keyboard.press("/");
    await page.keyboard.type("reconnect");
    await page.waitForURL(/q=reconnect/);
    await page.waitForFunction(() => {
      const names = [...document.querySelectorAll(".records tbody th .run-name")];
      return names.length > 0 && names.every((name) => name.textContent === "reconnect-storm");
    });
    await page.getByRole("link", { name: "Clear filters" }).click();
    await page
      .getByRole("button", { name: "Sort by p99" })
      .or(page.getByTitle("Sort by p99"))
      .click();
    await page.waitForURL(/sort=-e2e/);
    await page.locator("th.col-e2e_latency_us_p99[aria-sort=descending]").first().waitFor();
    await settled(page);
    await page.getByRole("button", { name: "Next" }).click();
    await page.getByText("51–100 of").waitFor();
    await page.getByRole("button", { name: "Previous" }).click();
    await page.getByText("1–50 of").waitFor();
    await settled(page);
    const first = page.locator(".records tbody tr").first();
    const name = await first.locator(".run-name").getAttribute("href");
    await first.locator(".star").click();
    await page.locator(".records tbody tr").first().locator(".star[aria-pressed=true]").waitFor();
    await first.locator(".popover > button").click();
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByText("1 run was moved to the trash.").waitFor();
    await page.waitForFunction(
      (href) => document.querySelector(".records tbody .run-name")?.getAttribute("href") !== href,
      name,
    );
    await page.getByRole("button", { name: "Undo" }).click();
    await page.waitForFunction(
      (href) => document.querySelector(".records tbody .run-name")?.getAttribute("href") === href,
      name,
    );
  },
);

test("deleted runs are restored later, and removed permanently only when asked", options, async () => {
  await page.goto(`${server.address}/runs`);
  await settled(page);
  const finished = server.records.of("finished").slice(0, 3);
  for (const { id } of finished) server.records.remove(id);
  await page.getByRole("link", { name: "Trash" }).click();
  await page.waitForURL("**/trash");
  await page.locator(".trash li").nth(2).waitFor();
  await page.locator(".trash li").first().getByRole("button", { name: /^Restore/ }).click();
  await page.getByText("Restored.").waitFor();
  await page.locator(".trash li").nth(2).waitFor({ state: "detached" });
  assert.notEqual(server.records.find(finished[2]!.id), undefined);
  await page.locator(".trash li").first().getByRole("button", { name: /permanently$/ }).click();
  await page.locator("dialog").getByText(/no way back/).waitFor();
  await page.locator("dialog").getByRole("button", { name: "Keep" }).click();
  assert.equal(server.records.trashed().total, 2);
  await page.getByRole("button", { name: "Empty the trash" }).click();
  await page.locator("dialog").getByText(/^2 runs with/).waitFor();
  await page.locator("dialog").getByRole("button", { name: "Delete permanently" }).click();
  await page.getByText(/^2 runs were deleted permanently: .* freed/).waitFor();
  await page.getByRole("heading", { name: "The trash is empty" }).waitFor();
  assert.deepEqual(server.changes.at(-1), "DELETE trash");
});

test("selected runs are compared, and the order of the sides can be changed", options, async () => {
  await page.goto(`${server.address}/runs?scenario=symmetric&state=finished`);
  await settled(page);
  for (const index of [0, 1, 2])
    await page.locator(".records tbody input[type=checkbox]").nth(index).check();
  await page.getByRole("status").getByRole("link", { name: "Compare" }).click();
  await page.waitForURL(/compare\?ids=/);
  await page.locator(".compared").waitFor();
  const before = new URL(page.url()).searchParams.get("ids")!.split(",");
  await page.getByRole("button", { name: "Make it the first" }).first().click();
  await page.waitForFunction(
    (id) => new URL(location.href).searchParams.get("ids")!.startsWith(id!),
    before[1],
  );
  await page.getByRole("button", { name: "Add a run" }).click();
  await page.locator(".pick button").first().click();
  await page.locator(".sides li").nth(3).waitFor();
});

test("language and colours change without a reload and are kept", options, async () => {
  await page.goto(`${server.address}/runs`);
  await settled(page);
  await page.evaluate(() => {
    (globalThis as { mark?: number }).mark = 1;
  });
  await page.getByRole("button", { name: "Language: 中文" }).click();
  await page.getByRole("heading", { name: "记录" }).waitFor();
  assert.equal(await page.evaluate(() => document.documentElement.lang), "zh");
  await page.getByRole("button", { name: /配色/ }).click();
  assert.equal(await page.evaluate(() => document.documentElement.dataset["theme"]), "dark");
  assert.equal(await page.evaluate(() => (globalThis as { mark?: number }).mark), 1);
  await page.reload();
  await page.getByRole("heading", { name: "记录" }).waitFor();
  assert.equal(await page.evaluate(() => document.documentElement.dataset["theme"]), "dark");
});

test(
  "ten thousand records do not keep the page busy, and the first load is small",
  options,
  async () => {
    const loaded = new Set<string>();
    page.on("request", (request) => {
      const { pathname } = new URL(request.url());
      if (pathname.startsWith("/assets/")) loaded.add(pathname);
    });
    await page.goto(`${server.address}/runs`);
    await settled(page);
    assert.equal(await page.locator(".records tbody tr").count(), 50);
    assert.ok((await page.locator("*").count()) < 4_000, "the page has too many elements");
    const { gzipSync } = await import("node:zlib");
    const { readFileSync } = await import("node:fs");
    const sizes = [...loaded].map(
      (path) => gzipSync(readFileSync(`dist/${path.split("/").pop()}`)).length,
    );
    assert.equal(sizes.length, 3);
    const total = sizes.reduce((sum, size) => sum + size, 0);
    assert.ok(total < 150_000, `${total} bytes compressed`);
  },
);

test("the keyboard reaches the content first, and dialogs give it back", options, async () => {
  await page.goto(`${server.address}/runs/${RUNNING.id}`);
  await page.getByRole("button", { name: "Stop" }).waitFor();
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement?.textContent), "Skip to content");
  await page.getByRole("button", { name: "Share" }).focus();
  await page.keyboard.press("Enter");
  await page.locator("dialog[open]").waitFor();
  await page.keyboard.press("Escape");
  await page.locator("dialog[open]").waitFor({ state: "detached" });
  assert.match(await page.evaluate(() => document.activeElement?.textContent ?? ""), /Share/);
});
