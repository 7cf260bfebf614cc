// Whether a client may do something by the rules in force, and which line decides.

import { useWords } from "../i18n";
import { Failure, Loading } from "../parts/notice";
import { Chip } from "../parts/verdict";
import { usePlace } from "../router";
import { useBroker } from "./api";
import { AddressField, AddressSelect } from "./parts";
import type { AccessAnswer } from "./types";

const ACTIONS = ["publish", "subscribe", "receive", "connect"] as const;
type Action = (typeof ACTIONS)[number];

export function Why() {
  const t = useWords();
  const words = t.broker.why;
  const { query } = usePlace();
  const action: Action = ACTIONS.find((one) => one === query.get("do")) ?? "publish";
  const given = { client_id: query.get("client") ?? "", user: query.get("as") ?? "" };
  const topic = query.get("topic") ?? "";
  const isAsked = action === "connect" ? given.client_id !== "" || given.user !== "" : topic !== "";
  return (
    <section class="card">
      <h2>{words.title}</h2>
      <p class="field-help">{words.help}</p>
      <div class="filters">
        <AddressField name="client" label={t.broker.clients.id} value={given.client_id} />
        <AddressField name="as" label={words.as} value={given.user} />
        <AddressSelect
          name="do"
          label={words.action}
          value={action}
          options={ACTIONS.map((one): [string, string] => [one, words.actions[one]])}
        />
        {action !== "connect" && (
          <AddressField
            name="topic"
            label={action === "subscribe" ? t.broker.filter : t.broker.topic}
            value={topic}
          />
        )}
      </div>
      {isAsked && (
        <Answer
          asked={{
            action,
            ...(action === "connect" ? {} : { topic }),
            ...(given.client_id === "" ? {} : { client_id: given.client_id }),
            ...(given.user === "" ? {} : { user: given.user }),
          }}
        />
      )}
    </section>
  );
}

function Answer({ asked }: { asked: Record<string, string> }) {
  const t = useWords();
  const words = t.broker.why;
  const { data, error, reload } = useBroker<AccessAnswer>(["explain"], asked);
  if (error) return <Failure error={error} retry={reload} />;
  if (data === null) return <Loading lines={1} />;
  return (
    <p class="facts" role="status">
      <Chip tone={data.allowed ? "good" : "bad"}>{data.allowed ? words.allowed : words.denied}</Chip>
      <span lang="en">{data.why}</span>
      {data.roles.length > 0 && <span>{words.roles(data.roles.join(", "))}</span>}
      {data.of_session && <span class="quiet">{words.ofSession(data.user)}</span>}
    </p>
  );
}
