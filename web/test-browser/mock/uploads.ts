// Uploads of the mock: a plan that reads users.csv, and its data.

import type { Problem, Upload, Variable } from "../../src/console/types";

const SERVER: Variable = {
  name: "server",
  kind: "text",
  unit: null,
  default: "127.0.0.1",
  minimum: null,
  maximum: null,
  choices: null,
  help: "host of the broker",
};

export class Uploads {
  private readonly known = new Map<string, { name: string; lines: string[][] }>();

  take(name: string, body: Buffer): Upload {
    const id = `u${this.known.size + 1}`;
    const lines = body
      .toString("utf8")
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => line.split(","));
    this.known.set(id, { name, lines });
    if (!/\.(csv|txt)$/.test(name)) return this.inspect(id, []);
    const uneven = lines.findIndex((cells) => cells.length !== lines[0]!.length);
    const problems: Problem[] = [];
    if (uneven > 0)
      problems.push({
        field: null,
        message:
          `${name}:${uneven + 1}: ${lines[uneven]!.length} cell, ` +
          `the first line has ${lines[0]!.length}`,
      });
    const shown = (cells: string[], line: number) =>
      cells.map((cell, column) =>
        line > 0 && lines[0]![column]!.includes("password") ? "•••" : cell,
      );
    const table = {
      lines: lines.length,
      columns: lines[0] ?? [],
      delimiter: ",",
      first: lines.slice(0, 5).map(shown),
      is_whole: true,
    };
    return { upload: id, name, kind: "data", table, problems };
  }

  inspect(id: string, data: string[]): Upload {
    const { name } = this.known.get(id) ?? { name: "plan.jmx" };
    const base = { upload: id, name, variables: [SERVER] };
    const groups = [
      { name: "Publishers", virtual_users: 100 },
      { name: "Subscribers", virtual_users: 100 },
    ];
    if (name.endsWith(".toml")) return { ...base, kind: "scenario", groups, problems: [] };
    const users = data.map((one) => this.known.get(one)).find((one) => one?.name === "users.csv");
    const file = {
      name: "users.csv",
      line: 41,
      element: "Users",
      columns: users?.lines[0] ?? [],
      rows: users === undefined ? null : users.lines.length - 1,
      rows_per_machine: null,
      is_there: users !== undefined,
    };
    const missing = `${name}:41: 'Users' reads users.csv: upload that file, too`;
    return {
      ...base,
      kind: "plan",
      groups: users === undefined ? null : groups,
      files: [file],
      problems: users === undefined ? [{ field: null, message: missing }] : [],
    };
  }
}
