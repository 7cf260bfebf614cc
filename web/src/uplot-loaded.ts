// Replaces "uplot" in the other scripts, since the page has loaded src/uplot.ts before them.

import type uPlot from "uplot";

export default (globalThis as unknown as { uPlot: typeof uPlot }).uPlot;
