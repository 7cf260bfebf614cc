// The console: all pages of `tacho serve`.

import { render } from "preact";

import { App } from "./app";
import { followLinks } from "./router";
import { applied, settings } from "./settings";

applied(settings.get());
followLinks();
const root = document.getElementById("root");
if (root !== null) render(<App />, root);
