// Actions behind a button.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { Icon } from "./icon";
import type { IconName } from "./icon";

type Spot = Partial<Record<"top" | "bottom" | "left" | "right", string>>;

// Below the button, or above it in the lower part of the window; towards the middle.
function spotBeside(box: DOMRect): Spot {
  const { clientWidth: width, clientHeight: height } = document.documentElement;
  const vertical =
    box.bottom > height * 0.62
      ? { bottom: `${height - box.top + 6}px` }
      : { top: `${box.bottom + 6}px` };
  return box.right > width / 2
    ? { ...vertical, right: `${Math.max(width - box.right, 8)}px` }
    : { ...vertical, left: `${Math.max(box.left, 8)}px` };
}

// Content that opens below a button and closes with Esc, a click elsewhere, or `close`.
export function Popover({
  label,
  button,
  children,
  quiet = false,
}: {
  label: string;
  button: ComponentChildren;
  quiet?: boolean;
  children: (close: () => void) => ComponentChildren;
}) {
  const [isOpen, setOpen] = useState(false);
  const [spot, setSpot] = useState<Spot>({});
  const whole = useRef<HTMLDivElement>(null);
  const opener = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (!isOpen) return;
    const outside = (event: Event) => {
      if (!whole.current?.contains(event.target as Node)) setOpen(false);
    };
    const escape = (event: KeyboardEvent) => {
      if (event.key !== "Escape") return;
      setOpen(false);
      opener.current?.focus();
    };
    // It stays where it was opened, and its button does not.
    const moved = () => setOpen(false);
    addEventListener("scroll", moved, true);
    addEventListener("resize", moved);
    document.addEventListener("pointerdown", outside);
    document.addEventListener("focusin", outside);
    document.addEventListener("keydown", escape);
    return () => {
      removeEventListener("scroll", moved, true);
      removeEventListener("resize", moved);
      document.removeEventListener("pointerdown", outside);
      document.removeEventListener("focusin", outside);
      document.removeEventListener("keydown", escape);
    };
  }, [isOpen]);
  return (
    <div class="popover" ref={whole}>
      <button
        ref={opener}
        type="button"
        class={quiet ? "icon-button" : "button"}
        aria-label={label}
        aria-expanded={isOpen}
        onClick={() => {
          if (opener.current !== null) setSpot(spotBeside(opener.current.getBoundingClientRect()));
          setOpen(!isOpen);
        }}
      >
        {button}
      </button>
      {isOpen && (
        <div class="popover-content" style={spot}>
          {children(() => setOpen(false))}
        </div>
      )}
    </div>
  );
}

export function MenuItem({
  icon,
  children,
  act,
  danger = false,
}: {
  icon: IconName;
  children: string;
  act: () => void;
  danger?: boolean;
}) {
  return (
    <button type="button" class={danger ? "menu-item danger" : "menu-item"} onClick={act}>
      <Icon name={icon} />
      {children}
    </button>
  );
}
