// Stands for "uplot" in the other scripts: the page has loaded it before them (src/uplot.ts).

import type uPlot from "uplot";

export default (globalThis as unknown as { uPlot: typeof uPlot }).uPlot;
