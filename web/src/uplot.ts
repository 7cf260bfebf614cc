// uPlot as a script of its own: pages of one server load it once, and a report contains it once.

import uPlot from "uplot";

(globalThis as unknown as { uPlot: typeof uPlot }).uPlot = uPlot;
