// Figures with their names, side by side.

export type Tile = [value: string, name: string, isBad?: boolean];

export function TileRow({ tiles, test }: { tiles: Tile[]; test?: string }) {
  return (
    <div class="tiles" {...(test === undefined ? {} : { "data-test": test })}>
      {tiles.map(([value, name, isBad], index) => (
        <div key={index} class={isBad ? "tile bad" : "tile"}>
          <b>{value}</b>
          <span>{name}</span>
        </div>
      ))}
    </div>
  );
}
