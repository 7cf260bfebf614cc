// Users, roles and bans.

import { useState } from "preact/hooks";

import { useWords } from "../i18n";
import { Icon } from "../parts/icon";
import { Failure, Loading } from "../parts/notice";
import { complain, say } from "../parts/toast";
import { When } from "../parts/when";
import { act, useBroker, useMayOperate } from "./api";
import { BanDialog } from "./ban-dialog";
import { ListOf, Table } from "./parts";
import type { BanRow, Bans, UserRow } from "./types";
import { useList } from "./use-list";
import { Why } from "./why";

export function AccessPage() {
  return (
    <>
      <Why />
      <BansCard />
      <Users />
      <Roles />
    </>
  );
}

function whatOf(ban: BanRow): [thing: "address" | "client_id" | "user", what: string] {
  if (ban.client_id !== undefined) return ["client_id", ban.client_id];
  return ban.user !== undefined ? ["user", ban.user] : ["address", ban.address ?? ""];
}

function BansCard() {
  const t = useWords();
  const words = t.broker.bans;
  const bans = useBroker<Bans>(["bans"], {}, true);
  const mayOperate = useMayOperate();
  const [isAdding, setAdding] = useState(false);
  const lift = async (ban: BanRow) => {
    const [thing, what] = whatOf(ban);
    try {
      await act("DELETE", ["bans"], { [thing]: what });
      say(words.lifted(what));
      bans.reload();
    } catch (error) {
      complain(error);
    }
  };
  const { data } = bans;
  return (
    <section class="card">
      <div class="section-head">
        <h2>{words.title}</h2>
        {mayOperate && (
          <button type="button" class="button" onClick={() => setAdding(true)}>
            <Icon name="plus" />
            {words.add}
          </button>
        )}
      </div>
      {bans.error && <Failure error={bans.error} retry={bans.reload} />}
      {data === null && !bans.error && <Loading lines={3} />}
      {data !== null && data.bans.length === 0 && <p class="quiet">{words.empty}</p>}
      {data !== null && data.bans.length > 0 && (
        <Table
          label={words.title}
          rows={data.bans}
          keyOf={(ban, index) => `${whatOf(ban).join(" ")} ${index}`}
          columns={[
            { name: words.what, cell: (ban) => <code>{whatOf(ban)[1]}</code> },
            { name: words.thing, cell: (ban) => words.things[whatOf(ban)[0]] },
            { name: words.source, cell: ({ source }) => words.sources[source] },
            { name: words.until, cell: ({ until }) => (until ? <When iso={until} /> : words.never) },
            { name: words.reason, cell: ({ reason }) => reason ?? "–" },
            ...(mayOperate
              ? [
                  {
                    name: words.lift,
                    cell: (ban: BanRow) =>
                      ban.source === "file" ? (
                        <span class="quiet">{words.inFile}</span>
                      ) : (
                        <button
                          type="button"
                          class="button small"
                          aria-label={words.liftOf(whatOf(ban)[1])}
                          onClick={() => void lift(ban)}
                        >
                          {words.lift}
                        </button>
                      ),
                  },
                ]
              : []),
          ]}
        />
      )}
      {data !== null && (
        <p class="quiet">
          {data.flapping_client_ids > 0 && `${words.flapping(data.flapping_client_ids)} `}
          {data.cut && `${words.cut} `}
          {!data.lasting && words.notLasting}
        </p>
      )}
      {isAdding && (
        <BanDialog
          given={{ client_id: "", user: "", address: "" }}
          close={() => setAdding(false)}
          done={() => {
            setAdding(false);
            bans.reload();
          }}
        />
      )}
    </section>
  );
}

function Users() {
  const t = useWords();
  const words = t.broker.access;
  const list = useList<UserRow>(["users"], {}, "users");
  return (
    <section class="card">
      <h2>{words.users}</h2>
      <p class="field-help">{words.readOnly}</p>
      <ListOf
        list={list}
        empty={words.noUsers}
        label={words.users}
        keyOf={({ user }) => user}
        columns={[
          {
            name: t.broker.clients.user,
            cell: ({ user }) => (
              <a href={`/broker/clients?user=${encodeURIComponent(user)}`}>{user}</a>
            ),
          },
          { name: words.roles, cell: ({ roles }) => roles.join(", ") || "–" },
          { name: words.listeners, cell: ({ listeners }) => listeners.join(", ") || "–" },
        ]}
      />
    </section>
  );
}

function Roles() {
  const t = useWords();
  const words = t.broker.access;
  const roles = useBroker<{ roles: { role: string }[] }>(["roles"], {}, true);
  return (
    <section class="card">
      <h2>{words.roles}</h2>
      <p class="field-help">{words.rolesHelp}</p>
      {roles.error && <Failure error={roles.error} retry={roles.reload} />}
      {roles.data !== null && roles.data.roles.length === 0 && (
        <p class="quiet">{words.noRoles}</p>
      )}
      {roles.data !== null && (
        <p class="tags">
          {roles.data.roles.map(({ role }) => (
            <span key={role} class="tag">
              {role}
            </span>
          ))}
        </p>
      )}
    </section>
  );
}
