// Icons: strokes on a grid of 20, in the colour of the text beside them.

const PATHS = {
  plus: "M10 4v12M4 10h12",
  star: "M10 3l2.1 4.6 5 .6-3.7 3.4 1 4.9L10 14l-4.4 2.5 1-4.9L2.9 8.2l5-.6z",
  check: "M4 10.5l4 4 8-9",
  cross: "M5 5l10 10M15 5L5 15",
  warning: "M10 3l7.5 13.5h-15zM10 8v4M10 14.2v.3",
  info: "M10 2.8a7.2 7.2 0 100 14.4 7.2 7.2 0 000-14.4zM10 9v4.5M10 6.4v.3",
  copy: "M7 7V4h9v9h-3M4 7h9v9H4z",
  more: "M4.4 10a.6.6 0 101.2 0 .6.6 0 10-1.2 0zM9.4 10a.6.6 0 101.2 0 .6.6 0 10-1.2 0zM14.4 10a.6.6 0 101.2 0 .6.6 0 10-1.2 0z",
  search: "M9 3.5a5.5 5.5 0 100 11 5.5 5.5 0 000-11zM13.2 13.2L17 17",
  sun: "M10 6.5a3.5 3.5 0 100 7 3.5 3.5 0 000-7zM10 2v1.8M10 16.2V18M2 10h1.8M16.2 10H18M4.3 4.3l1.3 1.3M14.4 14.4l1.3 1.3M15.7 4.3l-1.3 1.3M5.6 14.4l-1.3 1.3",
  moon: "M16.5 11.8A7 7 0 018.2 3.5a7 7 0 108.3 8.3z",
  screen: "M3 4h14v9.5H3zM7 17h6M10 13.5V17",
  play: "M6.5 4.5l9 5.5-9 5.5z",
  stop: "M5.5 5.5h9v9h-9z",
  repeat: "M4 8.5A6.2 6.2 0 0115.4 7M16 11.5A6.2 6.2 0 014.6 13M15.8 3.5V7h-3.5M4.2 16.5V13h3.5",
  edit: "M4 16l.8-3.6L13.5 3.7a1.6 1.6 0 012.3 0l.5.5a1.6 1.6 0 010 2.3L7.6 15.2z",
  share: "M10 12.5V3M6.5 6L10 2.8 13.5 6M4.5 10v6.5h11V10",
  print: "M6 8V3.5h8V8M6 14H3.5V8h13v6H14M6 11.8h8v4.7H6z",
  trash: "M4 6h12M8 6V4h4v2M5.5 6l.7 10.5h7.6L14.5 6M8.4 9v4.8M11.6 9v4.8",
  download: "M10 3v9.5M6.5 9.2L10 12.5l3.5-3.3M4.5 13v3.5h11V13",
  upload: "M10 13V3.5M6.5 6.8L10 3.5l3.5 3.3M4.5 13v3.5h11V13",
  left: "M12.5 4.5L7 10l5.5 5.5",
  right: "M7.5 4.5L13 10l-5.5 5.5",
  up: "M5 12.5L10 7.5l5 5",
  down: "M5 7.5l5 5 5-5",
  columns: "M3.5 4h13v12h-13zM8 4v12M12.2 4v12",
  clock: "M10 2.8a7.2 7.2 0 100 14.4 7.2 7.2 0 000-14.4zM10 6v4.3l2.8 1.7",
  link: "M8.3 11.7a3 3 0 004.3 0l2.7-2.7A3 3 0 0011 4.7l-1 1M11.7 8.3a3 3 0 00-4.3 0L4.7 11A3 3 0 009 15.3l1-1",
  flag: "M5 17.5V3.5h9.5l-2 3.2 2 3.3H5",
  tag: "M3.5 3.5h6l7 7-6 6-7-7zM6.8 6.8h.01",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, filled = false }: { name: IconName; filled?: boolean }) {
  return (
    <svg
      class={filled ? "icon filled" : "icon"}
      viewBox="0 0 20 20"
      aria-hidden="true"
      focusable="false"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}
