// Reason codes of MQTT 5.0 (2.4) in words. Those of 3.1.1 are few, and shown by the same words.

import type { Language } from "../settings";

// By code: in English, in Chinese.
const WORDS: Record<number, [string, string]> = {
  0x00: ["success", "成功"],
  0x01: ["granted with QoS 1", "已授予 QoS 1"],
  0x02: ["granted with QoS 2", "已授予 QoS 2"],
  0x04: ["disconnected, and the will is published", "已断开，遗嘱会发布"],
  0x10: ["taken, and there are no subscribers", "已接收，没有订阅者"],
  0x11: ["there was no such subscription", "没有此订阅"],
  0x80: ["refused without a reason", "被拒绝，未说明原因"],
  0x81: ["a packet is malformed", "报文格式错误"],
  0x82: ["a packet is not as the protocol has it", "违反协议"],
  0x83: ["not as this broker has it", "此 Broker 不接受"],
  0x84: ["the broker does not have this version of MQTT", "不支持此 MQTT 版本"],
  0x85: ["the client identifier is not taken", "客户端标识符无效"],
  0x86: ["user or password is wrong", "用户名或密码错误"],
  0x87: ["not authorized", "未授权"],
  0x88: ["the broker is not available", "Broker 不可用"],
  0x89: ["the broker is busy", "Broker 繁忙"],
  0x8a: ["banned", "已被封禁"],
  0x8b: ["the broker is shutting down", "Broker 正在关闭"],
  0x8c: ["this way of logging in is not known", "认证方式错误"],
  0x8d: ["silent for longer than the keep-alive", "保活超时"],
  0x8e: ["another connection has taken the session", "会话已被其他连接接管"],
  0x8f: ["the filter is not valid here", "主题过滤器无效"],
  0x90: ["the topic is not valid here", "主题名无效"],
  0x91: ["the packet identifier is in use", "报文标识符正在使用"],
  0x92: ["the packet identifier is not known", "报文标识符不存在"],
  0x93: ["more messages than were allowed at a time", "超过接收最大值"],
  0x94: ["the topic alias is not valid", "主题别名无效"],
  0x95: ["the packet is too large", "报文过大"],
  0x96: ["messages come too fast", "消息速率过高"],
  0x97: ["a quota is used up", "超过配额"],
  0x98: ["disconnected by an operator", "被管理员断开"],
  0x99: ["the payload is not of its format", "载荷格式无效"],
  0x9a: ["retained messages are not available", "不支持保留消息"],
  0x9b: ["this QoS is not available", "不支持此 QoS"],
  0x9c: ["use another server for now", "请暂时使用其他服务器"],
  0x9d: ["the server has moved", "服务器已迁移"],
  0x9e: ["shared subscriptions are not available", "不支持共享订阅"],
  0x9f: ["connections come too fast", "超过连接速率"],
  0xa0: ["it was connected for as long as it may", "超过最长连接时间"],
  0xa1: ["subscription identifiers are not available", "不支持订阅标识符"],
  0xa2: ["subscriptions with wildcards are not available", "不支持通配符订阅"],
};

// Return codes of a CONNACK of MQTT 3.1.1 (3.2.2.3), as those of 5.0.
const OF_CONNACK_4: Record<number, number> = { 1: 0x84, 2: 0x85, 3: 0x88, 4: 0x86, 5: 0x87 };

export function reasonOf(code: number, language: Language): string {
  const words = WORDS[code]?.[language === "zh" ? 1 : 0];
  const number = `0x${code.toString(16).padStart(2, "0").toUpperCase()}`;
  return words === undefined ? number : `${words} (${number})`;
}

// Of a CONNACK.
export function refusalOf(code: number, version: 5 | 4, language: Language): string {
  const words = WORDS[OF_CONNACK_4[code] ?? -1]?.[language === "zh" ? 1 : 0];
  return version === 4 && words !== undefined ? `${words} (${code})` : reasonOf(code, language);
}
