import assert from "node:assert/strict";
import { test } from "node:test";

import { boundsOf } from "../src/console/new/bounds";
import {
  EMPTY,
  fromQuery,
  fromRequest,
  inShort,
  problemOf,
  problemWithin,
  seconds,
  toQuery,
  toRequest,
  whole,
} from "../src/console/new/draft";
import type { Draft } from "../src/console/new/draft";
import { wordsOf } from "../src/console/i18n";
import type { Request, Variable } from "../src/console/types";

const WORDS = { time: "no time", count: "no count" };
const draft = (part: Partial<Draft>): Draft => ({ ...EMPTY, ...part });

test("a form survives its address", () => {
  const whole = draft({
    command: "compare",
    scenario: "symmetric",
    data: ["a", "b"],
    variables: { qos: "2", topic: "a&b=c" },
    brokers: ["builtin", "mqtt://h:1883"],
    user: "u",
    passwordFile: "/p",
    virtualUsers: { "Group 1": "5" },
    machines: "4",
    agents: "region=eu:4, 2",
    bus: "nats://h:4222",
    busCredentials: "/bus.creds",
    loops: "forever",
    rows: "copy",
    variable: "publishers",
    stopWhen: ["cpu>95%"],
    only: ["qos1"],
    thresholds: ["p99<10ms", ""],
    note: "zwei\nZeilen",
    tags: "x, y",
  });
  assert.deepEqual(fromQuery(new URLSearchParams(toQuery(whole).toString())), whole);
  assert.equal(toQuery(EMPTY).toString(), "");
  assert.deepEqual(fromQuery(new URLSearchParams("command=unknown&step=2&all=1")), EMPTY);
});

test("a form becomes what the API takes", () => {
  const { request, problems } = toRequest(
    draft({
      scenario: "symmetric",
      variables: { qos: "2" },
      duration: "5m",
      repeat: "3",
      tags: "a, b",
      thresholds: [" p99<10ms ", ""],
      objectives: ["cpu<=75%"],
      ca: "/ca.pem",
    }),
    WORDS,
  );
  assert.deepEqual(problems, []);
  assert.deepEqual(request, {
    command: "run",
    scenario: "symmetric",
    variables: { qos: "2" },
    broker: "builtin",
    duration_s: 300,
    repeat: 3,
    tags: ["a", "b"],
    thresholds: ["p99<10ms"],
    tls: { ca_file: "/ca.pem", cert_file: null, key_file: null },
  });
});

test("only a plan has loops and rows, only its command a search, a ladder or a suite", () => {
  const all = draft({
    scenario: "s",
    loops: "3",
    rows: "split",
    variable: "publishers",
    objectives: ["cpu<=75%"],
    steps: "qos=0,1",
    stopWhen: ["cpu>95%"],
    only: ["x"],
  });
  const keys = (part: Partial<Draft>) => Object.keys(toRequest({ ...all, ...part }, WORDS).request);
  const usual = ["command", "variables", "scenario", "broker"];
  assert.deepEqual(keys({}), usual);
  assert.deepEqual(keys({ command: "capacity" }), [...usual, "objectives", "variable"]);
  assert.deepEqual(keys({ command: "ladder" }), [...usual, "steps", "stop_when"]);
  assert.deepEqual(keys({ command: "suite" }), [...usual, "only"]);
  const plan = toRequest({ ...all, upload: "u" }, WORDS).request;
  assert.deepEqual([plan.loops, plan.rows], [3, "split"]);
  const wrong = toRequest({ ...all, upload: "u", loops: "often" }, WORDS);
  assert.deepEqual(wrong.problems, [{ field: "loops", message: "no count" }]);
});

test("a scenario with several brokers takes an address for each", () => {
  const request = toRequest(
    draft({ scenario: "bridge", broker: "node1=mqtt://a:1, node2=mqtt://b:1" }),
    WORDS,
  ).request;
  assert.deepEqual(request.broker, ["node1=mqtt://a:1", "node2=mqtt://b:1"]);
  assert.equal(fromRequest(request).broker, "node1=mqtt://a:1, node2=mqtt://b:1");
});

test("load machines are a list, with the bus that they are on", () => {
  const form = draft({
    scenario: "s",
    agents: "region=eu:4, 2",
    bus: " nats://h:4222 ",
    busCredentials: "/bus.creds",
  });
  const request = toRequest(form, WORDS).request;
  assert.deepEqual(request.agents, ["region=eu:4", "2"]);
  assert.deepEqual([request.bus, request.bus_credentials], ["nats://h:4222", "/bus.creds"]);
  const again = fromRequest(request);
  assert.deepEqual([again.agents, again.bus], ["region=eu:4, 2", "nats://h:4222"]);
  assert.ok(!("agents" in toRequest(draft({ scenario: "s" }), WORDS).request));
});

test("numbers that are none are named with their field", () => {
  const { request, problems } = toRequest(
    draft({ scenario: "s", duration: "long", repeat: "0", virtualUsers: { g: "-1" } }),
    WORDS,
  );
  assert.deepEqual(problems, [
    { field: "virtual_users.g", message: "no count" },
    { field: "duration_s", message: "no time" },
    { field: "repeat", message: "no count" },
  ]);
  assert.ok(!("duration_s" in request) && !("repeat" in request));
});

test("a comparison takes all its brokers, a plan its upload", () => {
  const compare = toRequest(
    draft({ command: "compare", scenario: "s", brokers: ["builtin", " mqtt://h ", ""] }),
    WORDS,
  );
  assert.deepEqual(compare.request.broker, ["builtin", "mqtt://h"]);
  const plan = toRequest(
    draft({ scenario: "s", upload: "u1", virtualUsers: { g: "7" }, rampUp: "10" }),
    WORDS,
  );
  assert.deepEqual(
    [plan.request.scenario, plan.request.upload, plan.request.ramp_up_s],
    [undefined, "u1", 10],
  );
});

test("a request that was made fills the form", () => {
  const request: Request = {
    command: "ladder",
    scenario: "fan-in",
    steps: "payload_size=1,2",
    variables: { qos: "1" },
    broker: "mqtt://h:1883",
    credentials: { username: "u", password_file: "/p" },
    duration_s: 15,
    tags: ["x"],
  };
  const { request: again } = toRequest(fromRequest(request), WORDS);
  assert.deepEqual(again, request);
});

test("times take units", () => {
  assert.deepEqual(["30", "30s", "500ms", "5m", "2 min", "1.5h", "x", "-1", ""].map(seconds), [
    30,
    30,
    0.5,
    300,
    120,
    5400,
    null,
    null,
    null,
  ]);
  assert.deepEqual(
    ["1", "0", "1.5", "12345678901234567890"].map((text) => whole(text, 1)),
    [1, null, null, null],
  );
});

test("problems are found by their field, also those of lists", () => {
  const problems = [
    { field: "thresholds.1", message: "a" },
    { field: "broker", message: "b" },
    { field: null, message: "c" },
  ];
  assert.equal(problemOf(problems, "thresholds[1]"), "a");
  assert.equal(problemOf(problems, "thresholds[0]"), undefined);
  assert.equal(problemOf(problems, "broker"), "b");
  const several = [{ field: "broker[1]", message: "d" }];
  assert.equal(problemWithin(several, "broker"), "d");
  assert.equal(problemWithin(several, "brok"), undefined);
});

test("bounds are told in words", () => {
  const bounds = (
    minimum: number | null,
    maximum: number | null,
    choices: string[] | null = null,
  ) => boundsOf({ minimum, maximum, choices } as Variable, wordsOf("en"));
  assert.deepEqual(
    [bounds(0, 65535), bounds(24, null), bounds(null, 9), bounds(null, null), bounds(0, 2, ["0"])],
    ["0 to 65,535", "at least 24", "at most 9", "", ""],
  );
});

test("problems are told without the file that they point into", () => {
  const message = [
    "a payload of 3 bytes is too small to measure",
    "  --> symmetric.toml (built in):31:20",
    "   |",
    '31 | payload = { size = "{{payload_size}}" }',
    "   |                    ^^^^^^^^^^^^^^^^^^ at least 24",
    "   |",
    "   = help: the variable 'payload_size' is 3 (set with --var)",
    "   = help: every message carries its publisher",
  ].join("\n");
  assert.equal(
    inShort(message),
    "a payload of 3 bytes is too small to measure: at least 24; every message carries its publisher",
  );
  assert.equal(inShort("no such file: /a\nor b"), "no such file: /a\nor b");
});
