// Scenarios by name: which are standard, what they and their variables are called.

import type { Dictionary } from "./i18n";
import { translated } from "./i18n";
import type { Language } from "./settings";
import type { Scenario, Suite, Variable } from "./types";

// Those of the load service of the guide, in its order.
export const STANDARD = ["connect", "symmetric", "fan-in", "fan-out", "bridge", "persistent"];

const TITLES: Record<string, [en: string, zh: string]> = {
  connect: ["Connections", "连接"],
  symmetric: ["One to one", "一对一"],
  "fan-in": ["Fan-in", "扇入"],
  "fan-out": ["Fan-out", "扇出"],
  bridge: ["Bridge", "桥接"],
  persistent: ["Persistent sessions", "持久会话"],
  login: ["Logins", "登录"],
  "bridge-restart": ["Bridge restart", "桥接重启"],
  "reconnect-storm": ["Reconnect storm", "重连风暴"],
  takeover: ["Takeover", "会话接管"],
  churn: ["Churn", "客户端流动"],
  "retained-flood": ["Retained flood", "保留消息洪峰"],
  "will-storm": ["Will storm", "遗嘱风暴"],
  wildcard: ["Wildcards", "通配符"],
  "slow-consumer": ["Slow consumers", "慢消费者"],
  "request-response": ["Request and response", "请求与响应"],
  soak: ["Soak", "长时间运行"],
  mixed: ["Mixed", "混合"],
};

export function titleOf(scenario: Scenario, language: Language): string {
  const known = TITLES[scenario.name];
  if (language === "zh") return known?.[1] || scenario.title || scenario.name;
  if (known !== undefined && (scenario.title === "" || scenario.title === scenario.name))
    return known[0];
  return scenario.title || known?.[0] || scenario.name;
}

export function summaryOf(scenario: Scenario | Suite, language: Language): string {
  return (language === "zh" && scenario.summary_zh) || scenario.summary || "";
}

// Scenarios by group: the standard ones in their order, then the server's groups.
export function grouped(scenarios: Scenario[]): [group: string, scenarios: Scenario[]][] {
  const standard = STANDARD.flatMap((name) => scenarios.find((one) => one.name === name) ?? []);
  const groups = new Map<string, Scenario[]>();
  for (const scenario of scenarios) {
    if (STANDARD.includes(scenario.name)) continue;
    const group = scenario.group === "" || scenario.group === "standard" ? "more" : scenario.group;
    groups.set(group, [...(groups.get(group) ?? []), scenario]);
  }
  const more = groups.get("more");
  groups.delete("more");
  return [
    ...(standard.length > 0 ? [["standard", standard] as [string, Scenario[]]] : []),
    ...groups,
    ...(more !== undefined ? [["more", more] as [string, Scenario[]]] : []),
  ];
}

// What a variable is for, in the language of the page where its scenario has that.
export function helpOf(variable: Variable, language: Language): string {
  return (language === "zh" && variable.help_zh) || variable.help;
}

export function unitOf(variable: Variable, language: Language): string | null {
  return (language === "zh" && variable.unit_zh) || variable.unit;
}

// What a variable is called; unknown ones by their own name in words.
export function labelOf(variable: Variable, t: Dictionary): string {
  const known = translated(t.labels.variables, variable.name);
  if (known !== variable.name) return known;
  const words = variable.name.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}
