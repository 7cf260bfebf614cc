// The QoS of a subscription or a message.

import type { Qos } from "../../mqtt/packets";

export function QosSelect({ value, change }: { value: Qos; change: (value: Qos) => void }) {
  return (
    <label class="inline-field qos">
      <span>QoS</span>
      <select
        value={value}
        onChange={(event) => change(Number(event.currentTarget.value) as Qos)}
      >
        {[0, 1, 2].map((one) => (
          <option key={one} value={one}>
            {one}
          </option>
        ))}
      </select>
    </label>
  );
}
