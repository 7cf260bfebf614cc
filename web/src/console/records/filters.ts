// Which runs are asked for, as the address has it.

export const LIMIT = 50;
const DEFAULT_SORT = "-started";

export interface Filters {
  q: string;
  state: string;
  verdict: string;
  scenario: string;
  tag: string;
  starred: boolean;
  sort: string;
  cursor: string;
  // The number of the page, from 1, for the eye only: the cursor finds it.
  page: number;
}

export function filtersOf(query: URLSearchParams): Filters {
  const page = Number(query.get("page") ?? "1");
  return {
    q: query.get("q") ?? "",
    state: query.get("state") ?? "",
    verdict: query.get("verdict") ?? "",
    scenario: query.get("scenario") ?? "",
    tag: query.get("tag") ?? "",
    starred: query.get("starred") === "1",
    sort: query.get("sort") ?? DEFAULT_SORT,
    cursor: query.get("cursor") ?? "",
    page: Number.isInteger(page) && page > 0 ? page : 1,
  };
}

// The query of the API for them.
export function apiQuery(filters: Filters): URLSearchParams {
  const query = new URLSearchParams({ sort: filters.sort, limit: String(LIMIT) });
  for (const name of ["q", "state", "verdict", "scenario", "tag", "cursor"] as const) {
    if (filters[name] !== "") query.set(name, filters[name]);
  }
  if (filters.starred) query.set("starred", "1");
  return query;
}

export function isFiltered({ q, state, verdict, scenario, tag, starred }: Filters): boolean {
  return starred || [q, state, verdict, scenario, tag].some((value) => value !== "");
}
