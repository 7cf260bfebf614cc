// A browser and the console on test data, the latter anew for each test of a file.

import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach } from "node:test";

import type { Browser, BrowserContext, Page } from "playwright-core";

import { SKIP, launched, opened } from "./browser";
import { mock } from "./mock/server";
import type { Mock } from "./mock/server";

export interface Stage {
  server: Mock;
  context: BrowserContext;
  page: Page;
}

type Data = Parameters<typeof mock>[0];

// Every test of the file begins with a stage of its own, and ends without errors of a page. What is
// returned puts other data in the place of a stage's.
export function staged(
  data: Data,
  use: (stage: Stage) => void,
): (other: Data) => Promise<Mock> {
  const errors: string[] = [];
  let browser: Browser | undefined;
  let stage: Stage | undefined;
  before(async () => {
    if (SKIP === false) browser = await launched();
  });
  after(() => browser?.close());
  beforeEach(async () => {
    if (browser === undefined) return;
    const server = await mock(data);
    const view = { width: 1280, theme: "light", language: "en" } as const;
    const context = await opened(browser, view, errors);
    stage = { server, context, page: await context.newPage() };
    use(stage);
  });
  afterEach(async () => {
    await stage?.context.close();
    await stage?.server.close();
    assert.deepEqual(errors.splice(0), []);
  });
  return async (other) => {
    if (stage === undefined) throw new Error("no test is under way");
    await stage.server.close();
    stage.server = await mock(other);
    return stage.server;
  };
}
