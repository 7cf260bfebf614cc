// Small pictures of what a scenario does: publishers to the left, the broker between, subscribers
// to the right.

type Line = [from: [number, number], to: [number, number]];

interface Picture {
  left: number[];
  right: number[];
  brokers?: number[];
  lines: Line[];
}

const B: [number, number] = [32, 20];

function fan(left: number[], right: number[]): Picture {
  return {
    left,
    right,
    lines: [...left.map((y): Line => [[10, y], B]), ...right.map((y): Line => [B, [54, y]])],
  };
}

const PICTURES: Record<string, Picture> = {
  connect: {
    left: [6, 15, 25, 34],
    right: [],
    lines: [6, 15, 25, 34].map((y): Line => [
      [10, y],
      [44, 20],
    ]),
    brokers: [44],
  },
  symmetric: fan([8, 20, 32], [8, 20, 32]),
  "fan-in": fan([5, 12, 20, 28, 35], [20]),
  "fan-out": fan([20], [5, 12, 20, 28, 35]),
  bridge: {
    left: [12, 28],
    right: [12, 28],
    brokers: [24, 40],
    lines: [
      [
        [8, 12],
        [24, 20],
      ],
      [
        [8, 28],
        [24, 20],
      ],
      [
        [24, 20],
        [40, 20],
      ],
      [
        [40, 20],
        [56, 12],
      ],
      [
        [40, 20],
        [56, 28],
      ],
    ],
  },
  persistent: {
    left: [12, 28],
    right: [12, 28],
    lines: [
      [[10, 12], B],
      [[10, 28], B],
      [B, [54, 12]],
    ],
  },
};

export function Topology({ scenario }: { scenario: string }) {
  const picture = PICTURES[scenario] ?? fan([12, 28], [12, 28]);
  const brokers = picture.brokers ?? [32];
  const [from, to] = scenario === "bridge" ? [8, 56] : [10, 54];
  return (
    <svg class="topology" viewBox="0 0 64 40" aria-hidden="true" focusable="false">
      {picture.lines.map(([[x1, y1], [x2, y2]], index) => (
        <line key={index} x1={x1} y1={y1} x2={x2} y2={y2} />
      ))}
      {picture.left.map((y) => (
        <circle key={`l${y}`} class="client" cx={from} cy={y} r="2.6" />
      ))}
      {picture.right.map((y) => (
        <circle key={`r${y}`} class="client other" cx={to} cy={y} r="2.6" />
      ))}
      {brokers.map((x) => (
        <rect key={x} class="broker" x={x - 5} y="13" width="10" height="14" rx="2.5" />
      ))}
    </svg>
  );
}
