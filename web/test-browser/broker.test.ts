// What operators do with a broker in the console, step by step.

import assert from "node:assert/strict";
import { test } from "node:test";

import type { Page } from "playwright-core";

import { SKIP, settled } from "./browser";
import { mqtt } from "./mock/mqtt";
import type { Mock } from "./mock/server";
import { staged } from "./stage";

let server: Mock;
let page: Page;
const renewed = staged({ runs: 20, isBusy: false }, (stage) => {
  ({ server, page } = stage);
});

const options = { skip: SKIP };

test("the broker is in the navigation, and its overview shows figures and charts", options, async () => {
  await page.goto(server.address);
  await page.getByRole("link", { name: "Broker" }).click();
  await page.getByText("clients connected").waitFor();
  await page.locator(".history path").first().waitFor({ state: "attached" });
  // The rates are those between two answers.
  const rate = page.locator(".tile", { hasText: "messages in per second" }).locator("b");
  await page.waitForFunction(
    (tile) => /^[\d,]+/.test(tile?.textContent ?? ""),
    await rate.elementHandle(),
  );
  await page.getByRole("radio", { name: "Last day" }).check();
  await page.waitForURL(/span=day/);
  await page.getByRole("link", { name: "Configuration" }).click();
  await page.waitForURL(/\/broker\/config$/);
  await page.getByText("limits.connections_max").waitFor();
});

test("clients are filtered, paged, and disconnected once that is confirmed", options, async () => {
  await page.goto(`${server.address}/broker/clients`);
  await page.getByText("the first 100 rows").waitFor();
  await page.getByRole("button", { name: "More" }).click();
  await page.getByText("the first 200 rows").waitFor();
  await page.getByLabel("Identifier begins with").fill("meter-0000");
  await page.waitForURL(/prefix=meter-0000/);
  await page.getByText("9 rows").waitFor();
  await page.reload();
  await page.getByText("9 rows").waitFor();
  await page.getByRole("link", { name: "meter-00006" }).click();
  await page.getByRole("heading", { name: "meter-00006" }).waitFor();
  await page.getByText("commands/meter-00006").waitFor();
  await page.getByRole("button", { name: "Disconnect" }).click();
  await page.getByLabel(/End its session/).check();
  await page.locator("dialog").getByRole("button", { name: "Disconnect" }).click();
  await page.getByText("its session has ended").waitFor();
  await page.waitForURL(/\/broker\/clients$/);
  assert.deepEqual(server.changes, ["DELETE broker/clients/meter-00006"]);
});

test("a client is banned for a time, what is wrong stands beside it, and bans are lifted", options, async () => {
  await page.goto(`${server.address}/broker/access`);
  await page.getByRole("button", { name: "Ban", exact: true }).click();
  const dialog = page.locator("dialog");
  await dialog.getByRole("radio", { name: "Address or range" }).check();
  await dialog.getByRole("textbox", { name: "Address or range" }).fill("here");
  await dialog.getByRole("button", { name: "Ban", exact: true }).click();
  await dialog.getByText("neither an address nor a range").waitFor();
  await dialog.getByRole("radio", { name: "Client identifier" }).check();
  await dialog.getByRole("textbox", { name: "Client identifier" }).fill("meter-00042");
  await dialog.getByLabel("For how long").fill("soon");
  assert.ok(await dialog.getByRole("button", { name: "Ban", exact: true }).isDisabled());
  await dialog.getByLabel("For how long").fill("1h");
  await dialog.getByRole("button", { name: "Ban", exact: true }).click();
  await page.getByText("meter-00042 is banned.").waitFor();
  await page.getByRole("button", { name: "Lift the ban of meter-00911" }).click();
  await page.getByText("meter-00911 is banned no more.").waitFor();
  await page.getByText("changed in the file").waitFor();
});

test("retained messages are read, and deleted by a filter", options, async () => {
  await page.goto(`${server.address}/broker/retained`);
  await page.getByText("the first 100 rows").waitFor();
  await page.getByRole("button", { name: "buildings/1/floors/0/temperature" }).first().click();
  await page.locator("dialog").getByText("celsius").waitFor();
  await page.keyboard.press("Escape");
  await page.getByLabel("Topic filter").fill("buildings/1/#");
  await page.waitForURL(/filter=/);
  await page.getByRole("button", { name: "Delete all that match" }).click();
  await page.locator("dialog").getByRole("button", { name: "Delete" }).click();
  await page.getByText(/retained messages were deleted/).waitFor();
  await page.getByText("There are no such retained messages.").waitFor();
});

test("events arrive live, are filtered by kind, and can be paused", options, async () => {
  await page.goto(`${server.address}/broker/events`);
  await page.locator(".broker-table tbody tr").nth(5).waitFor();
  await page.getByRole("button", { name: "login refused" }).click();
  await page.waitForURL(/events=login_refused/);
  assert.equal(
    await page.getByRole("button", { name: "login refused" }).getAttribute("aria-pressed"),
    "true",
  );
  await page.locator(".broker-table tbody tr").first().waitFor();
  await page.getByRole("button", { name: "Clear" }).click();
  await page.getByText("Nothing has happened since this page was opened.").waitFor();
});

test("a client is traced from its page until that is stopped or its time is over", options, async () => {
  await page.goto(`${server.address}/broker/clients/meter-00006`);
  await page.getByRole("heading", { name: "meter-00006" }).waitFor();
  await page.locator(".client-title").getByRole("link", { name: "Trace" }).click();
  await page.waitForURL(/\/broker\/trace\?client_id=meter-00006$/);
  await page.getByLabel("Payload").selectOption("text");
  await page.getByRole("button", { name: "Start trace" }).click();
  await page.getByText("dropped, the queue is full").waitFor();
  await page.getByText('{"celsius": 21.5}').waitFor();
  assert.equal(await page.locator(".broker-table tbody tr").count(), 5);
  await page.getByRole("button", { name: "Stop trace" }).click();
  await page.getByLabel("For how long").selectOption("60");
  await page.getByRole("button", { name: "Start trace" }).click();
  await page.getByText("its time is over").waitFor();
  await page.getByRole("button", { name: "Start trace" }).waitFor();
  await page.getByLabel("Address or range").fill("here");
  await page.waitForURL(/address=here/);
  await page.getByRole("button", { name: "Start trace" }).click();
  await page.getByText("neither an address nor a range").waitFor();
});

test("it is told whether a client may do something, and why", options, async () => {
  await page.goto(`${server.address}/broker/access`);
  await page.getByLabel("Client", { exact: true }).fill("meter-00006");
  await page.getByLabel("Topic", { exact: true }).fill("in/1");
  await page.getByText("/etc/tacho/rules.toml:12").waitFor();
  await page.getByText("as it is connected, as meter").waitFor();
  await page.getByLabel("Wants to").selectOption("subscribe");
  await page.getByLabel("Topic filter").fill("out/#");
  await page.getByText("no rule of /etc/tacho/rules.toml allows it").waitFor();
  await page.waitForURL(/client=meter-00006&topic=out.*do=subscribe|do=subscribe.*topic=out/);
});

test("alarms are on the overview and have a page of their own", options, async () => {
  await page.goto(`${server.address}/broker`);
  await page.getByRole("alert").getByText("it expires in 6 days").waitFor();
  await page.getByRole("alert").getByRole("link", { name: "Alarms" }).click();
  await page.getByText("1 of 2 connections is down").waitFor();
  await page.getByText("8 % of the file system").waitFor();
});

test("a bridge is paused and runs again", options, async () => {
  await page.goto(`${server.address}/broker/bridges`);
  await page.getByRole("button", { name: "Pause: cloud" }).click();
  await page.getByText("cloud is paused: messages wait for it.").waitFor();
  await page.getByRole("button", { name: "Run: cloud" }).click();
  await page.getByText("cloud runs.").waitFor();
  assert.deepEqual(server.changes, ["POST broker/bridges/cloud", "POST broker/bridges/cloud"]);
});

test("a bridge is tested, made and removed by a form", options, async () => {
  await page.goto(`${server.address}/broker/bridges`);
  await page.getByRole("button", { name: "Add a bridge" }).click();
  const dialog = page.locator("dialog");
  const make = dialog.getByRole("button", { name: "Make the bridge" });
  await dialog.getByLabel("Name", { exact: true }).fill("no name");
  await dialog.getByText("are a name.").waitFor();
  assert.ok(await make.isDisabled());
  await dialog.getByLabel("Name", { exact: true }).fill("cloud");
  await dialog.getByLabel("Address of the remote broker").fill("mqtt://nowhere:1883");
  await dialog.getByLabel("Password").fill("hunter2");
  await dialog.getByLabel("Topic filter").fill("sensors/#");
  await dialog.getByRole("button", { name: "Test", exact: true }).click();
  await dialog.getByText("the name is not known").waitFor();
  await make.click();
  await dialog.getByText("there is a bridge 'cloud' already").waitFor();
  await dialog.getByLabel("Name", { exact: true }).fill("site");
  await dialog.getByLabel("Address of the remote broker").fill("mqtts://b.example:8883");
  await dialog.getByRole("button", { name: "Test", exact: true }).click();
  await dialog.getByText("accepted", { exact: true }).waitFor();
  await make.click();
  await page.getByRole("heading", { name: "site" }).waitFor();
  await page.getByRole("button", { name: "Test: cloud" }).click();
  await page.getByText("42 ms").waitFor();
  await page.getByRole("button", { name: "Remove: site" }).click();
  await page.locator("dialog").getByLabel("Drop the 15 messages").check();
  await page.locator("dialog").getByRole("button", { name: "Remove" }).click();
  await page.getByText("The bridge site is removed.").waitFor();
  // That of a file is not removed here.
  assert.equal(await page.getByRole("button", { name: "Remove: cloud" }).count(), 0);
});

test("the broker is drained once that is confirmed, and takes clients again", options, async () => {
  await page.goto(`${server.address}/broker`);
  await page.getByRole("button", { name: "Drain …" }).click();
  const dialog = page.locator("dialog");
  await dialog.getByRole("button", { name: "Cancel" }).click();
  assert.deepEqual(server.changes, []);
  await page.getByRole("button", { name: "Drain …" }).click();
  await dialog.getByLabel("Deadline").fill("soon");
  const act = dialog.getByRole("button", { name: "Drain and end the broker" });
  assert.ok(await act.isDisabled());
  await dialog.getByLabel("Deadline").fill("10s");
  await act.click();
  await dialog.getByText("the wait must be shorter").waitFor();
  await dialog.getByLabel("Deadline").fill("5m");
  await dialog.getByLabel("Server reference").fill("b.example:8883");
  await dialog.getByLabel("The broker stays").check();
  await dialog.getByRole("button", { name: "Drain the broker" }).click();
  await page.getByText("8,200 clients are connected, 2,200 were disconnected.").waitFor();
  await page.getByText("Clients are sent to b.example:8883. It stays without clients.").waitFor();
  await page.getByRole("button", { name: "Take clients again" }).click();
  await page.getByRole("button", { name: "Drain …" }).waitFor();
});

test("a backup is begun, followed, and says where it lies", options, async () => {
  await page.goto(`${server.address}/broker`);
  await page.getByLabel("Back up into").fill("backups");
  await page.getByRole("button", { name: "Back up", exact: true }).click();
  await page.getByText("beginning with /").waitFor();
  await page.getByLabel("Back up into").fill("/var/backups/tacho/1");
  await page.getByRole("button", { name: "Back up", exact: true }).click();
  await page.getByText("Up to commit").waitFor();
  await page.locator("code", { hasText: "/var/backups/tacho/1" }).waitFor();
});

test("two connections publish to each other, and say what the broker answers", options, async () => {
  const remote = await mqtt(page);
  await page.goto(`${server.address}/broker/events`);
  await page.getByRole("link", { name: "WebSocket client" }).click();
  await page.getByRole("button", { name: "Connect", exact: true }).waitFor();
  const connect = async (clientId: string, version: string) => {
    const form = page.locator(".connect");
    if ((await form.getAttribute("open")) === null) await form.locator("summary").click();
    await page.getByLabel("Client identifier").fill(clientId);
    await page.getByRole("radio", { name: version }).check();
    await page.getByRole("button", { name: "Connect", exact: true }).click();
    const card = page.getByRole("region", { name: clientId });
    await card.waitFor();
    return card;
  };
  const one = await connect("one", "MQTT 5.0");
  const two = await connect("two", "MQTT 3.1.1");
  await two.getByText("connected", { exact: true }).waitFor();
  await two.getByLabel("Topic filter").fill("meters/#/x");
  await two.getByText("# for all at the end").waitFor();
  await two.getByLabel("Topic filter").fill("meters/#");
  await two.getByRole("button", { name: "Subscribe" }).click();
  await two.getByText("QoS 1", { exact: true }).waitFor();
  await one.getByLabel("Topic", { exact: true }).fill("meters/7");
  await one.getByRole("radio", { name: "JSON" }).first().check();
  await one.getByLabel("Payload", { exact: true }).fill('{"celsius": 21.5');
  await one.getByText("The payload is not JSON.").waitFor();
  await one.getByLabel("Payload", { exact: true }).fill('{"celsius": 21.5}');
  await one.getByRole("button", { name: "Publish" }).click();
  await one.getByText("success (0x00)").waitFor();
  await two.getByText("1 received, 0 sent.").waitFor();
  await two.getByText('{"celsius": 21.5}').waitFor();
  await one.getByLabel("Topic", { exact: true }).fill("$SYS/x");
  await one.getByRole("button", { name: "Publish" }).click();
  await one.getByText("not authorized (0x87)").waitFor();
  await two.getByRole("button", { name: "Unsubscribe: meters/#" }).click();
  await two.getByText("Nothing is subscribed to.").waitFor();
  await two.getByRole("button", { name: "Disconnect" }).click();
  await two.getByRole("button", { name: "Remove" }).click();
  await two.waitFor({ state: "detached" });
  remote.drain();
  await one.getByText("use another server for now (0x9C).").waitFor();
  await one.getByText("Use b2.example.").waitFor();
  await one.getByRole("button", { name: "Connect again" }).click();
  await one.getByText("connected", { exact: true }).waitFor();
  const refused = await connect("banned", "MQTT 5.0");
  await refused.getByText("The broker refuses the connection: banned (0x8A).").waitFor();
  assert.deepEqual(server.changes, [], "the console has no part in it");
  const asked = page.waitForRequest((request) => request.isNavigationRequest());
  await page.getByRole("link", { name: "Alarms" }).click();
  assert.match((await asked).url(), /\/broker\/alarms$/, "the page is left as a document");
});

test("a password is in no address and in no storage, and warned of where it can be read", options, async () => {
  await mqtt(page);
  await page.goto(`${server.address}/broker/websocket`);
  await page.getByLabel("Listener of the broker").selectOption("another address");
  await page.getByLabel("Address", { exact: true }).fill("http://broker.example");
  await page.getByText("It is no address of a WebSocket").waitFor();
  await page.getByLabel("Address", { exact: true }).fill("ws://broker.example:8083");
  await page.getByLabel("User", { exact: true }).fill("meter");
  await page.getByLabel("Password", { exact: true }).fill("hunter2-secret");
  await page.getByText("goes over the network unencrypted").waitFor();
  await page.getByRole("button", { name: "Connect", exact: true }).click();
  await page.getByText("as meter").waitFor();
  const stored = await page.evaluate(() =>
    JSON.stringify([localStorage, sessionStorage, location.href, history.state]),
  );
  assert.ok(!stored.includes("hunter2"));
  await page.locator(".connect summary").click();
  await page.getByLabel("Listener of the broker").selectOption({ index: 1 });
  await page.getByText("does not admit web pages of").waitFor();
});

test("who gets a topic is told with filters, groups and bridges", options, async () => {
  await page.goto(`${server.address}/broker/topics`);
  await page.getByLabel("Topic", { exact: true }).fill("buildings/1/floors/2/temperature");
  await page.waitForURL(/topic=/);
  await page.getByRole("link", { name: "gateway/eu-central/rack-7" }).waitFor();
  await page.getByText("$share/workers/jobs/#").waitFor();
  await page.getByRole("link", { name: "cloud" }).click();
  await page.getByRole("heading", { name: "cloud" }).waitFor();
});

test("viewers see everything and change nothing", options, async () => {
  for (const given of [{ role: "viewer" as const }, { broker: { role: "viewer" as const } }]) {
    server = await renewed({ runs: 20, isBusy: false, ...given });
    await page.goto(`${server.address}/broker/clients/meter-00006`);
    await page.getByText("commands/meter-00006").waitFor();
    await settled(page);
    assert.equal(await page.locator(".danger").count(), 0);
    await page.goto(`${server.address}/broker/access`);
    await page.getByText("sends garbage").waitFor();
    assert.equal(await page.getByRole("button", { name: "Ban", exact: true }).count(), 0);
    await page.goto(`${server.address}/broker/bridges`);
    await page.getByRole("heading", { name: "cloud" }).waitFor();
    await settled(page);
    for (const name of ["Add a bridge", "Test: cloud", "Pause: cloud"])
      assert.equal(await page.getByRole("button", { name, exact: true }).count(), 0, name);
    await page.goto(`${server.address}/broker`);
    await page.getByText("none since the start").waitFor();
    await settled(page);
    for (const name of ["Back up", "Drain …"])
      assert.equal(await page.getByRole("button", { name, exact: true }).count(), 0, name);
    await page.goto(`${server.address}/broker/trace?client_id=meter-00006`);
    await page.getByText("needs the token of an operator").waitFor();
    assert.equal(await page.getByRole("button", { name: "Start trace" }).count(), 0);
  }
});

test("a broker that does not answer is said to, in the language of the viewer", options, async () => {
  server = await renewed({ runs: 20, isBusy: false, broker: { isGone: true } });
  await page.goto(`${server.address}/broker`);
  await page.getByText("the broker does not answer at /run/tacho/1883.sock").waitFor();
  await page.getByRole("button", { name: "Language: 中文" }).click();
  await page.getByText("没有响应").waitFor();
});

test("the keyboard reaches all of the broker's pages", options, async () => {
  await page.goto(`${server.address}/broker/clients`);
  await settled(page);
  const names = await page.locator(".tabs a").allInnerTexts();
  assert.equal(names.length, 12);
  await page.locator(".tabs a").nth(1).focus();
  for (let press = 0; press < 10; press += 1) await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement?.textContent), names[11]);
});
