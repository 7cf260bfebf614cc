// The console of the program itself, in a browser: from the form to the report, to the trash and
// back. TACHO=PATH names the program.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import type { Page } from "playwright-core";

import { SKIP, launched, opened, settled } from "./browser";

const program = process.env["TACHO"];
const skip = SKIP || (program === undefined ? "no program; name one with TACHO=…" : false);

// A small load, as the form has it in its address.
const SMALL = new URLSearchParams({
  scenario: "symmetric",
  "v.publishers": "2",
  "v.subscribers": "2",
  "v.target_throughput": "20",
  rampUp: "0.1",
  warmup: "0.2",
  duration: "2",
  name: "from the browser",
  thresholds: "lost==0",
  step: "3",
});

function begun(...words: string[]): ChildProcess {
  return spawn(program!, words, { stdio: ["ignore", "pipe", "pipe"] });
}

// What a program says that looks so, wherever it says it.
function saidBy(program: ChildProcess, looks: RegExp): Promise<string> {
  return new Promise((resolve, reject) => {
    let said = "";
    const take = (text: Buffer) => {
      said += text.toString();
      const found = looks.exec(said);
      if (found !== null) resolve(found[1] ?? found[0]);
    };
    program.stdout!.on("data", take);
    program.stderr!.on("data", take);
    program.on("exit", () => reject(new Error(`the program has ended: ${said}`)));
  });
}

// The link that the console prints.
function linkOf(console: ChildProcess): Promise<string> {
  return saidBy(console, /http:\S+token=\S+/);
}

async function exitOf(process: ChildProcess): Promise<void> {
  const gone = new Promise((resolve) => process.once("exit", resolve));
  if (process.exitCode === null) await gone;
}

async function end(process: ChildProcess): Promise<void> {
  if (process.exitCode === null && process.kill("SIGINT")) await exitOf(process);
}

async function ended(page: Page): Promise<string> {
  await page.locator(".verdict-banner h2").waitFor();
  return page.url().split("/").pop()!;
}

test("a test goes from the form to its report, and to the trash and back", { skip }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "tacho-console-"));
  const served = begun("serve", "--listen", "0", "--dir", folder);
  const browser = await launched();
  try {
    const link = await linkOf(served);
    const { origin } = new URL(link);
    const errors: string[] = [];
    const view = { width: 1280, theme: "light", language: "en" } as const;
    const page = await (await opened(browser, view, errors)).newPage();
    page.setDefaultTimeout(60_000);
    await page.goto(link);
    await page.getByRole("heading", { name: "No test has run yet" }).waitFor();
    assert.equal(page.url(), `${origin}/`, "the token is not in the address any more");

    await page.goto(`${origin}/new?${SMALL}`);
    await page.getByText("tacho run symmetric --broker builtin").waitFor();
    await page.getByRole("button", { name: "Start test" }).click();
    await page.waitForURL(/\/runs\/2/);
    await page.locator("figure canvas").first().waitFor();
    const first = await ended(page);
    await page.getByRole("heading", { name: "from the browser" }).waitFor();
    await page.getByText("lost==0").first().waitFor();
    await page.getByRole("link", { name: "Report" }).click();
    await page.frameLocator(".report-frame").locator("h1").waitFor();
    await page.getByRole("link", { name: "Course" }).click();
    await page.reload();
    await page.locator("figure canvas").nth(2).waitFor();
    await page.getByRole("link", { name: "Files" }).click();
    const saved = page.waitForEvent("download");
    await page.getByRole("link", { name: "Download summary.json" }).click();
    assert.equal((await saved).suggestedFilename(), `${first}-summary.json`);
    await page.getByRole("button", { name: "Language: 中文" }).click();
    await page.getByRole("link", { name: "报告" }).click();
    await page.frameLocator(".report-frame").locator("html[lang^=zh]").waitFor();
    await page.getByRole("button", { name: "English" }).click();

    await page.getByRole("button", { name: "Repeat", exact: true }).click();
    await page.waitForURL((url) => url.pathname !== `/runs/${first}`);
    const second = await ended(page);
    await page.goto(`${origin}/compare?ids=${first},${second}`);
    await page.locator(".sides li").nth(1).waitFor();
    await settled(page);

    await page.goto(`${origin}/runs/${second}`);
    await page.locator(".run-actions .popover > button").click();
    await page.getByRole("button", { name: "Delete" }).click();
    await page.waitForURL(`${origin}/runs`);
    await page.getByText("1 run was moved to the trash.").waitFor();
    await page.getByRole("link", { name: "Trash" }).click();
    await page.getByRole("button", { name: "Restore from the browser" }).click();
    await page.getByRole("heading", { name: "The trash is empty" }).waitFor();
    await page.goto(`${origin}/runs/${second}`);
    await ended(page);
    assert.deepEqual(errors, []);
  } finally {
    await browser.close();
    await end(served);
    rmSync(folder, { recursive: true, force: true });
  }
});

// Two connections to the broker's WebSocket listener, one of each version.
async function throughWebSockets(page: Page): Promise<void> {
  await page.getByRole("link", { name: "WebSocket client" }).click();
  const connect = async (clientId: string, version: string) => {
    const form = page.locator(".connect");
    if ((await form.getAttribute("open")) === null) await form.locator("summary").click();
    await page.getByLabel("Client identifier").fill(clientId);
    await page.getByRole("radio", { name: version }).check();
    await page.getByRole("button", { name: "Connect", exact: true }).click();
    const card = page.getByRole("region", { name: clientId });
    await card.getByText("connected", { exact: true }).waitFor();
    return card;
  };
  const reads = await connect("reads", "MQTT 5.0");
  await reads.getByLabel("Topic filter").fill("rooms/#");
  await reads.getByLabel("QoS").first().selectOption("2");
  await reads.getByRole("button", { name: "Subscribe" }).click();
  await reads.getByText("QoS 2", { exact: true }).waitFor();
  const sends = await connect("sends", "MQTT 3.1.1");
  await sends.getByLabel("Topic", { exact: true }).fill("rooms/1");
  for (const qos of ["0", "1", "2"]) {
    await sends.getByLabel("QoS").nth(1).selectOption(qos);
    await sends.getByLabel("Payload", { exact: true }).fill(`with QoS ${qos}`);
    await sends.getByRole("button", { name: "Publish" }).click();
    await reads.locator("pre", { hasText: `with QoS ${qos}` }).waitFor();
  }
  await sends.locator(".message-list").getByText("success (0x00)").nth(1).waitFor();
  // Larger than one read of a socket.
  await sends.getByLabel("Payload", { exact: true }).fill("x".repeat(300_000));
  await sends.getByRole("button", { name: "Publish" }).click();
  await reads.getByText("(the first").waitFor();
  await reads.getByRole("button", { name: "Unsubscribe: rooms/#" }).click();
  await reads.getByText("Nothing is subscribed to.").waitFor();
  // Another connection takes the session.
  const taken = connect("sends", "MQTT 5.0");
  await page.getByText("The connection broke.").or(page.getByText("(0x8E)")).first().waitFor();
  await taken.catch(() => undefined);
}

test("a broker is looked into and operated in its pages", { skip }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "tacho-broker-"));
  const socket = join(folder, "m.sock");
  const children: ChildProcess[] = [];
  const begin = (...words: string[]) => {
    const child = begun(...words);
    children.push(child);
    return child;
  };
  const browser = await launched();
  try {
    const broker = begin("broker", "--listen", "0", "--listen", "ws://127.0.0.1:0", "--shards", "1", "--management-socket", socket);
    const port = await saidBy(broker, /listening on \S+:(\d+)/);
    await exitOf(begin("pub", "-p", port, "-t", "a/b", "-m", "here", "-r"));
    // One that connects again would be an event on the page below.
    const meter = begin("sub", "-p", port, "-t", "a/#", "-i", "meter-1", "--no-reconnect");
    await saidBy(meter, /here/);
    const link = await linkOf(begin("serve", "--listen", "0", "--dir", folder, "--manage", socket));
    const { origin } = new URL(link);
    const errors: string[] = [];
    const view = { width: 1280, theme: "light", language: "en" } as const;
    const page = await (await opened(browser, view, errors)).newPage();
    await page.goto(link);
    await page.getByRole("link", { name: "Broker" }).click();
    await page.getByText("clients connected").waitFor();
    await page.getByText("connections_max").waitFor();
    await page.getByText("This broker has no journal").waitFor();
    await page.goto(`${origin}/broker/topics?topic=a/b`);
    await page.getByRole("link", { name: "meter-1" }).click();
    await page.getByRole("heading", { name: "meter-1" }).waitFor();
    await page.getByRole("button", { name: "Disconnect" }).click();
    await page.locator("dialog").getByRole("button", { name: "Disconnect" }).click();
    await page.getByText("The client was disconnected").waitFor();
    await throughWebSockets(page);
    for (const part of ["clients", "retained", "groups", "bridges", "access", "config", "trace", "alarms", "events"]) {
      await page.goto(`${origin}/broker/${part}`);
      await settled(page);
      assert.equal(await page.locator(".notice.bad").count(), 0, part);
    }
    await page.getByText("Nothing has happened since this page was opened.").waitFor();
    assert.deepEqual(errors, []);
  } finally {
    await browser.close();
    for (const child of children.reverse()) await end(child);
    rmSync(folder, { recursive: true, force: true });
  }
});
