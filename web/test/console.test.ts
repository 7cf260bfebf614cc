import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";

import { endpoint, failureOf } from "../src/console/api";
import { NEW_BRIDGE, NEW_RULE, configurationOf, faultsOf } from "../src/console/broker/bridge-draft";
import { hostOf } from "../src/console/broker/client";
import { pathOf, ratesOf, timeTicks } from "../src/console/broker/history-chart";
import { wordsOf } from "../src/console/i18n";
import { nextSort, shownColumns } from "../src/console/records/columns";
import { apiQuery, filtersOf, isFiltered } from "../src/console/records/filters";
import { address, routeOf } from "../src/console/router";
import { foldersOf } from "../src/console/run/files";
import { tagsOf } from "../src/console/run-actions";
import { grouped, helpOf, labelOf, titleOf, unitOf } from "../src/console/scenarios";
import { errorText, said } from "../src/console/said";
import { parsed } from "../src/console/settings";
import {
  exactMoment,
  moment,
  percent,
  runName,
  signed,
  span,
  targetName,
  zoneName,
} from "../src/console/show";
import { toneOf } from "../src/console/parts/verdict";
import { shareOf } from "../src/console/parts/progress";
import { marksOf, median } from "../src/console/trends/marks";
import { pieces } from "../src/console/trends/trend-chart";
import { toStore } from "../src/console/new/uploads";
import type { UploadedFile } from "../src/console/new/uploads";
import type { Progress, Row, Scenario, TrendPoint, Variable } from "../src/console/types";

test("addresses have pages, and those of files have none", () => {
  assert.deepEqual(routeOf("/"), { page: "home" });
  assert.deepEqual(routeOf("/runs"), { page: "records" });
  assert.deepEqual(routeOf("/trash"), { page: "trash" });
  assert.deepEqual(routeOf("/runs/a%20b"), { page: "run", id: "a b" });
  assert.deepEqual(routeOf("/runs/%E0%A4%A"), { page: "unknown" });
  assert.equal(routeOf("/runs/a/report.html"), null);
  assert.equal(routeOf("/metrics"), null);
  assert.equal(address("/runs", { tag: "a&b", q: "", state: null }), "/runs?tag=a%26b");
  assert.equal(address("/runs"), "/runs");
});

test("names of runs cannot leave their place in an address of the API", () => {
  assert.equal(endpoint(["runs", "../machine?x#y"]), "/api/v1/runs/..%2Fmachine%3Fx%23y");
  assert.equal(endpoint(["runs"], new URLSearchParams({ q: "a b" })), "/api/v1/runs?q=a+b");
});

test("errors of the API keep their field, and others say their status", () => {
  const error = failureOf(400, '{"error":{"message":"too many","field":"variables.qos"}}');
  assert.deepEqual([error.message, error.status, error.field], ["too many", 400, "variables.qos"]);
  assert.equal(failureOf(502, "<html>bad gateway</html>").message, "HTTP 502");
});

test("settings survive damage, and follow the browser without a choice", () => {
  assert.deepEqual(parsed(null, "zh-CN"), { language: "zh", theme: "system" });
  assert.deepEqual(parsed("{", "en"), { language: "en", theme: "system" });
  assert.deepEqual(parsed('{"theme":"pink","language":"xx","columns":[1]}', "en"), {
    language: "en",
    theme: "system",
    columns: ["1"],
  });
  assert.deepEqual(parsed('{"theme":"dark","language":"en"}', "zh"), {
    language: "en",
    theme: "dark",
  });
});

test("times are in the viewer's zone, and the zone is named", () => {
  const iso = "2026-11-26T04:05:06Z";
  assert.equal(moment(iso, "en", "Asia/Shanghai"), "26 Nov 2026, 12:05");
  assert.match(exactMoment(iso, "en", "Asia/Shanghai"), /12:05:06.*GMT\+0?8/);
  assert.equal(zoneName(new Date(iso), "Asia/Shanghai"), "Asia/Shanghai (GMT+08:00)");
  assert.equal(moment("soon", "en"), "–");
});

test("lengths of time read naturally", () => {
  assert.deepEqual(
    [0, 4.26, 45, 60, 200, 3600, 7500].map((s) => span(s, "en")),
    ["0 s", "4.3 s", "45 s", "1 min", "3 min 20 s", "1 h", "2 h 5 min"],
  );
  assert.equal(span(200, "zh"), "3 分 20 秒");
  assert.equal(span(null, "en"), "–");
});

test("percentages and changes say as much as they know", () => {
  assert.deepEqual([0, 0.001, 0.25, 12.34].map(percent), ["0", "< 0.01", "0.25", "12.3"]);
  assert.equal(signed(-3.21, "percent", ""), "−3.2 %");
  assert.equal(signed(1500, "absolute", "microseconds"), "+1.50 ms");
  assert.equal(signed(null, "percent", ""), "–");
});

test("runs and brokers are called as people know them", () => {
  assert.equal(runName({ name: "20261126-040010-symmetric" }), "symmetric");
  assert.equal(runName({ name: "nightly" }), "nightly");
  assert.equal(targetName("builtin, mqtt://a:1883", "own"), "own, mqtt://a:1883");
});

test("verdicts that say nothing about the broker are not bad", () => {
  assert.deepEqual(
    ["ok", "generator_bound", "qos_violation", "aborted", "of_the_future"].map(toneOf),
    ["good", "warn", "bad", "calm", "bad"],
  );
});

test("every verdict and state has words in both languages", () => {
  const [en, zh] = [wordsOf("en"), wordsOf("zh")];
  for (const key of ["verdicts", "kinds", "levels", "groups", "figures", "columnUnits"] as const) {
    assert.deepEqual(Object.keys(zh[key]).sort(), Object.keys(en[key]).sort(), key);
  }
  assert.deepEqual(
    Object.keys(zh.labels.variables).sort(),
    Object.keys(en.labels.variables).sort(),
  );
});

test("every variable of a built-in scenario has a name in both languages", () => {
  const folder = "../crates/scenario/scenarios";
  const names = readdirSync(folder).flatMap((file) => {
    const [, rest = ""] = readFileSync(`${folder}/${file}`, "utf8").split("\n[vars]\n");
    const [lines = ""] = rest.split("\n[");
    return [...lines.matchAll(/^(\w+) = /gm)].map(([, name]) => name!);
  });
  assert.ok(names.length > 100, `${names.length} variables`);
  for (const language of ["en", "zh"] as const) {
    const { variables } = wordsOf(language).labels;
    assert.deepEqual(names.filter((name) => variables[name] === undefined), [], language);
    const unused = Object.keys(variables).filter((name) => !names.includes(name));
    assert.deepEqual(unused, [], language);
  }
});

const row = (part: Partial<Row>): Row =>
  ({ started: "2026-11-26T04:00:00Z", duration_s: null, ...part }) as Row;

test("how far a run is follows from its steps and their planned time", () => {
  const now = Date.parse("2026-11-26T04:00:30Z");
  const progress: Progress = {
    phase: "measure",
    number: 3,
    of: 4,
    since: "2026-11-26T04:00:20Z",
    planned_s: 20,
    step_since: "2026-11-26T04:00:10Z",
    step_planned_s: 40,
    step: null,
    verdicts: {},
    failures: 0,
    missed: 0,
  };
  const share = (part: Partial<Progress>) =>
    shareOf(row({ progress: { ...progress, ...part } }), now);
  const step = (number: number, of: number | null) => ({ number, of, title: "" });
  assert.deepEqual(share({}), { share: 0.5, left: 20 });
  assert.deepEqual(share({ step: step(2, 4) }), { share: 0.375, left: 100 });
  assert.deepEqual(share({ step: step(5, 4) }), { share: 0.9, left: 20 }, "more than planned");
  assert.deepEqual(share({ step: step(2, null) }), { share: null, left: null }, "a search");
  assert.deepEqual(share({ step_planned_s: 5 }), { share: 1, left: 0 }, "late");
  assert.deepEqual(share({ step_since: "2026-11-26T05:00:00Z" }), { share: 0, left: 40 });
  assert.deepEqual(shareOf(row({}), now), { share: null, left: null }, "it just begins");
});

test("help and units of variables are those of the language, where there are any", () => {
  const variable = { help: "clients", help_zh: "客户端数", unit: "clients", unit_zh: "个" };
  const plain = { help: "of a plan", unit: "bytes" };
  assert.deepEqual(
    [variable, plain].map((one) => [
      helpOf(one as Variable, "zh"),
      unitOf(one as Variable, "zh"),
      helpOf(one as Variable, "en"),
    ]),
    [
      ["客户端数", "个", "clients"],
      ["of a plan", "bytes", "of a plan"],
    ],
  );
});

test("phases of runs have names in Chinese", () => {
  const phases = "connect subscribe offline probe warm-up measure resume drain disconnect".split(" ");
  for (const phase of phases) assert.ok(wordsOf("zh").labels.charts[phase], phase);
});

test("lines of uploaded data are not kept by the browser", () => {
  const table = { lines: 9, columns: ["a"], delimiter: ",", first: [["secret"]], is_whole: true };
  const file: UploadedFile = { upload: "u", name: "x", kind: "data", table, problems: [], size: 1 };
  assert.ok(!JSON.stringify(toStore(file)).includes("secret"));
  assert.deepEqual(toStore(file).table?.columns, ["a"]);
});

test("filters of the address are those of the API", () => {
  const filters = filtersOf(new URLSearchParams("q=a&state=running&starred=1&page=3&cursor=c&x=y"));
  assert.equal(
    apiQuery(filters).toString(),
    "sort=-started&limit=50&q=a&state=running&cursor=c&starred=1",
  );
  assert.equal(filters.page, 3);
  assert.equal(filtersOf(new URLSearchParams("page=-1")).page, 1);
  assert.ok(isFiltered(filters));
  assert.ok(!isFiltered(filtersOf(new URLSearchParams("sort=name&page=2"))));
});

test("columns sort figures from the largest, words from the first", () => {
  assert.equal(nextSort("-started", "achieved_tps", true), "-achieved_tps");
  assert.equal(nextSort("-achieved_tps", "achieved_tps", true), "achieved_tps");
  assert.equal(nextSort("-started", "name", false), "name");
  assert.equal(nextSort("name", "name", false), "-name");
  assert.equal(nextSort("-started", "started", false), "started");
});

test("chosen columns keep their order, and unknown ones are left out", () => {
  assert.deepEqual(
    shownColumns(["cpu_percent", "verdict", "x"], 1280).map(({ id }) => id),
    ["verdict", "cpu_percent"],
  );
  assert.ok(shownColumns(undefined, 1920).length > shownColumns(undefined, 1280).length);
  assert.deepEqual(shownColumns([], 1280), []);
});

test("files are grouped by their directory, in their order", () => {
  const file = (name: string) => ({ name, bytes: 1, kind: "record" as const });
  const folders = foldersOf(["b.csv", "a.json", "steps/2/x", "steps/1/x", "steps/1/y"].map(file));
  assert.deepEqual([...folders.keys()], ["", "steps/2", "steps/1"]);
  assert.deepEqual(
    folders.get("")!.map(({ name }) => name),
    ["b.csv", "a.json"],
  );
  assert.equal(folders.get("steps/1")!.length, 2);
});

test("tags are taken from a text once each", () => {
  assert.deepEqual(tagsOf(" a, b，a ,,c"), ["a", "b", "c"]);
});

const scenario = (name: string, group = ""): Scenario => ({
  name,
  title: name,
  group,
  summary: "",
  variables: [],
});

test("standard scenarios come first and in their order", () => {
  const groups = grouped([
    scenario("soak", "events"),
    scenario("fan-in"),
    scenario("connect"),
    scenario("mine"),
  ]);
  assert.deepEqual(
    groups.map(([group, all]) => [group, ...all.map(({ name }) => name)]),
    [
      ["standard", "connect", "fan-in"],
      ["events", "soak"],
      ["more", "mine"],
    ],
  );
  assert.equal(titleOf(scenario("fan-in"), "en"), "Fan-in");
  assert.equal(titleOf(scenario("fan-in"), "zh"), "扇入");
  assert.equal(titleOf(scenario("mine"), "zh"), "mine");
});

test("variables without a known label are called by their name in words", () => {
  const label = (name: string) => labelOf({ name } as Variable, wordsOf("en"));
  assert.equal(label("payload_size"), "Payload size");
  assert.equal(label("my_own_thing"), "My own thing");
});

const point = (value: number | null): TrendPoint => ({
  id: String(value),
  started: "",
  version: "",
  target: "",
  value,
});

test("change points tell the change of the medians beside them", () => {
  const points = [10, 12, 11, 22, 21, 23, null].map(point);
  assert.deepEqual(
    marksOf({ points, changes: [3] }).map(({ index, percent }) => [index, Math.round(percent!)]),
    [[3, 100]],
  );
  assert.deepEqual(
    marksOf({ points, changes: [0, 7, 3, 3] }).map(({ index }) => index),
    [3],
  );
  assert.equal(marksOf({ points: [0, 0, 5].map(point), changes: [2] })[0]!.percent, null);
  assert.equal(median([3, 1, 2, 4]), 2.5);
  assert.deepEqual(pieces([1, null, 2, 3].map(point)), [[0], [2, 3]]);
});

test("sentences of the program are those of the language, where there are any", () => {
  const problem = { message: "there is no run 'a'", message_zh: "没有测试“a”" };
  assert.equal(said(problem, "zh"), "没有测试“a”");
  assert.equal(said(problem, "en"), "there is no run 'a'");
  assert.equal(said({ message: "Traceback" }, "zh"), "Traceback", "of another program");
  const error = failureOf(409, JSON.stringify({ error: { ...problem, field: null } }));
  assert.equal(errorText(error, "zh"), "没有测试“a”");
  assert.equal(errorText(failureOf(502, "<html>"), "zh"), "HTTP 502");
});

test("the addresses of the broker's pages have parts", () => {
  assert.deepEqual(routeOf("/broker"), { page: "broker", pieces: [] });
  assert.deepEqual(routeOf("/broker/clients/a%2Fb"), { page: "broker", pieces: ["clients", "a/b"] });
  assert.deepEqual(routeOf("/broker/clients/%E0%A4%A"), { page: "unknown" });
  assert.equal(routeOf("/brokers"), null);
});

test("counts become rates, and a restart of the broker interrupts them", () => {
  const times = [0, 10_000, 20_000, 30_000];
  assert.deepEqual(ratesOf(times, [100, 200, 50, 80]), [null, 10, null, 3]);
  const [x, y] = [(at: number) => at / 1000, (value: number) => value];
  assert.equal(pathOf(times, [1, 2, null, 3], x, y), "M0.0 1.0L10.0 2.0M30.0 3.0");
  assert.deepEqual(timeTicks(30_000, 3_630_000, 4), [900_000, 1_800_000, 2_700_000, 3_600_000]);
  assert.equal(hostOf("[::1]:1883"), "::1");
  assert.equal(hostOf("192.0.2.7:40000"), "192.0.2.7");
  assert.equal(hostOf(null), "");
});

test("a bridge of the form is what the broker takes, and what is missing is named", () => {
  const draft = {
    ...NEW_BRIDGE, name: " site ", address: "mqtts://b.example:8883", password: " x ", ca: "/ca.pem", connections: "4",
    rules: [
      { ...NEW_RULE, filter: "sensors/#", topic: "sites/7/${topic}" },
      { ...NEW_RULE, direction: "ingress" as const, filter: "commands/#", qos: "1" as const },
      NEW_RULE,
    ],
  };
  assert.deepEqual(faultsOf(draft), []);
  assert.deepEqual(configurationOf(draft), {
    name: "site", address: "mqtts://b.example:8883", version: "5", password: " x ", tls: { ca: "/ca.pem" }, connections: 4,
    egress: [{ filter: "sensors/#", topic: "sites/7/${topic}" }],
    ingress: [{ filter: "commands/#", qos: 1 }],
  });
  assert.deepEqual(faultsOf(NEW_BRIDGE), ["name", "address", "rules"]);
  assert.deepEqual(faultsOf({ ...draft, name: "a/b", address: "http://b", connections: "0" }), ["name", "address", "connections"]);
});
