// uPlot by itself: what the pages of one server load once, and a report contains once.

import uPlot from "uplot";

(globalThis as unknown as { uPlot: typeof uPlot }).uPlot = uPlot;
