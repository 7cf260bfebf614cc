// Bundles scripts and style sheets into `dist/`, which is committed so that building the program
// needs no node. `--out DIR` selects another folder; `--tests` bundles the tests into `out/` for
// `node --test`.

import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const at = process.argv.indexOf("--out");
const dist = at > 0 ? process.argv[at + 1] : "dist";

if (process.argv.includes("--tests")) {
  await build({
    entryPoints: readdirSync("test").map((name) => `test/${name}`),
    outdir: "out",
    outExtension: { ".js": ".mjs" },
    bundle: true,
    platform: "node",
    format: "esm",
    logLevel: "warning",
  });
} else {
  const licence = readFileSync("node_modules/uplot/LICENSE", "utf8").trim();
  const notice = `/*! Contains uPlot.\n${licence}\n*/`;
  const script = {
    outdir: dist,
    bundle: true,
    minify: true,
    charset: "utf8",
    format: "iife",
    target: "es2022",
    legalComments: "none",
    logLevel: "warning",
  };
  // uPlot is a separate file, so that the program contains it once.
  await build({ ...script, entryPoints: ["src/uplot.ts"], banner: { js: notice } });
  await build({
    ...script,
    entryPoints: ["src/report.ts", "src/live.ts"],
    alias: { uplot: "./src/uplot-loaded.ts" },
  });
  await build({
    entryPoints: ["src/style.css", "src/live.css"],
    outdir: dist,
    bundle: true,
    minify: true,
    charset: "utf8",
    legalComments: "none",
    logLevel: "warning",
  });
  writeFileSync(
    `${dist}/LICENSES.txt`,
    `The files here are made from web/src (Apache-2.0, see LICENSE) and contain:\n\n`
      + `uPlot, https://github.com/leeoniya/uPlot\n\n${licence}\n`,
  );
}
