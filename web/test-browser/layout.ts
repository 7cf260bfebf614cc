// Looks at a page as it is laid out. Runs in the browser: it may use nothing from outside.

export function laidOut(): string[] {
  const found: string[] = [];
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) {
    const widest = [...document.querySelectorAll("body *")]
      .map((element) => ({ element, right: element.getBoundingClientRect().right }))
      .filter(({ element, right }) => right > root.clientWidth + 1 && !inScroller(element))
      .slice(0, 3)
      .map(({ element }) => nameOf(element));
    found.push(
      `the page is ${root.scrollWidth} px wide in a window of ${root.clientWidth}: ${widest.join(", ")}`,
    );
  }
  const shown = (element: Element): boolean => {
    const box = element.getBoundingClientRect();
    const style = getComputedStyle(element);
    return (
      box.width > 1 &&
      box.height > 1 &&
      element.checkVisibility() &&
      style.visibility === "visible" &&
      Number(style.opacity) > 0 &&
      !element.closest(".hidden-text, .skip, [hidden], .u-over")
    );
  };
  // Texts that do not fit into what holds them.
  const held =
    "button, .button, label, th, td, h1, h2, h3, .chip, .tag:not(a), .tile b, .tile span, dt, dd, legend, summary, option";
  for (const element of document.querySelectorAll<HTMLElement>(held)) {
    if (!shown(element)) continue;
    const style = getComputedStyle(element);
    const isCut = element.scrollWidth > element.clientWidth + 1 && element.clientWidth > 0;
    if (
      isCut &&
      style.overflowX !== "visible" &&
      style.textOverflow !== "ellipsis" &&
      style.overflowX !== "auto"
    ) {
      found.push(`clipped: ${nameOf(element)}`);
    }
    if (isCut && style.overflowX === "visible" && element.matches("button, .button, .chip"))
      found.push(`spills over: ${nameOf(element)}`);
    const box = element.getBoundingClientRect();
    if ((box.left < -1 || box.right > root.clientWidth + 1) && !inScroller(element))
      found.push(`out of the window: ${nameOf(element)}`);
  }
  // Things to press that cover each other.
  const pressed = [
    ...document.querySelectorAll<HTMLElement>("button, a[href], input, select, textarea, summary"),
  ].filter((element) => shown(element) && !floats(element));
  const boxes = pressed.map((element) => element.getBoundingClientRect());
  for (let a = 0; a < pressed.length; a += 1) {
    for (let b = a + 1; b < pressed.length; b += 1) {
      const [one, two] = [boxes[a]!, boxes[b]!];
      const width = Math.min(one.right, two.right) - Math.max(one.left, two.left);
      const height = Math.min(one.bottom, two.bottom) - Math.max(one.top, two.top);
      if (width <= 2 || height <= 2) continue;
      if (pressed[a]!.contains(pressed[b]!) || pressed[b]!.contains(pressed[a]!)) continue;
      found.push(`overlap: ${nameOf(pressed[a]!)} and ${nameOf(pressed[b]!)}`);
    }
  }
  return found.slice(0, 12);

  function inScroller(element: Element): boolean {
    for (
      let at: Element | null = element.parentElement;
      at !== null && at !== document.body;
      at = at.parentElement
    ) {
      const { overflowX } = getComputedStyle(at);
      if (overflowX === "auto" || overflowX === "scroll" || overflowX === "hidden") return true;
    }
    return false;
  }
  function floats(element: Element): boolean {
    for (let at: Element | null = element; at !== null; at = at.parentElement) {
      if (["fixed", "sticky"].includes(getComputedStyle(at).position)) return true;
    }
    return false;
  }
  function nameOf(element: Element): string {
    const text = (element.textContent ?? "").trim().replace(/\s+/g, " ").slice(0, 40);
    return `<${element.tagName.toLowerCase()} class="${element.getAttribute("class") ?? ""}"> "${text}"`;
  }
}
