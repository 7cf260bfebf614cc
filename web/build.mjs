// Bundles scripts and style sheets into `dist/`, which is committed so that building the program
// needs no node. `--out DIR` selects another folder; `--tests` bundles the tests into `out/` for
// `node --test`, `--browser-tests` those that need a browser into `out/browser/`.

import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const at = process.argv.indexOf("--out");
const dist = at > 0 ? process.argv[at + 1] : "dist";

const tests = (folder, outdir) =>
  build({
    entryPoints: readdirSync(folder)
      .filter((name) => name.includes(".test."))
      .map((name) => `${folder}/${name}`),
    outdir,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    platform: "node",
    format: "esm",
    jsx: "automatic",
    jsxImportSource: "preact",
    external: ["playwright-core", "axe-core"],
    logLevel: "warning",
  });

if (process.argv.includes("--tests")) {
  await tests("test", "out");
} else if (process.argv.includes("--browser-tests")) {
  await tests("test-browser", "out/browser");
} else {
  const licences = [
    ["uPlot", "https://github.com/leeoniya/uPlot", "uplot"],
    ["Preact", "https://github.com/preactjs/preact", "preact"],
  ].map(([name, address, folder]) => ({
    name,
    address,
    text: readFileSync(`node_modules/${folder}/LICENSE`, "utf8").trim(),
  }));
  const notice = (name) => {
    const { text } = licences.find((licence) => licence.name === name);
    return `/*! Contains ${name}.\n${text}\n*/`;
  };
  const script = {
    outdir: dist,
    bundle: true,
    minify: true,
    charset: "utf8",
    format: "iife",
    target: "es2022",
    legalComments: "none",
    jsx: "automatic",
    jsxImportSource: "preact",
    logLevel: "warning",
  };
  const alias = { uplot: "./src/uplot-loaded.ts" };
  // uPlot is a separate file, so that the program contains it once.
  await build({ ...script, entryPoints: ["src/uplot.ts"], banner: { js: notice("uPlot") } });
  await build({ ...script, entryPoints: ["src/report.ts", "src/live.ts"], alias });
  await build({
    ...script,
    entryPoints: { console: "src/console/main.tsx" },
    alias,
    banner: { js: notice("Preact") },
  });
  await build({
    entryPoints: {
      style: "src/style.css",
      live: "src/live.css",
      console: "src/console/console.css",
    },
    outdir: dist,
    bundle: true,
    minify: true,
    charset: "utf8",
    legalComments: "none",
    logLevel: "warning",
  });
  const contained = licences.map(({ name, address, text }) => `${name}, ${address}\n\n${text}\n`);
  writeFileSync(
    `${dist}/LICENSES.txt`,
    `The files here are made from web/src (Apache-2.0, see LICENSE) and contain:\n\n` +
      contained.join("\n"),
  );
}
