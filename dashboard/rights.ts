/**
 * The rights of the caller, as the code that decides requests decides them (`GET {base}/meta/access?account=me`): in a collection, on one of
 * its documents, and for the actions that are on no collection. Hooks and preconditions may refuse more, so every refusal is shown too.
 */
import { signal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import type { AccessReport } from './api-types.ts';
import { base, isCollection, type Listed, type Schema, type Step } from './description.ts';
import { isObject, send } from './send.ts';

type Operation = 'create' | 'update' | 'delete';

export type Rights = {
  /** False: never, or not on this document. */
  readonly may: (operation: Operation) => boolean;
  readonly mayCall: (step: Step) => boolean;
  /** Members of new documents, or of this one, that the caller does not set. */
  readonly closed: (members: Iterable<string>) => ReadonlySet<string>;
  /** The schema without the members that are hidden from the caller. */
  readonly seen: (schema: Schema) => Schema;
  /** The credential lacks the scope `write`. */
  readonly lacksScope: boolean;
};

const unrestricted: Rights = {
  ...{ may: () => true, mayCall: () => true },
  ...{ closed: () => new Set<string>(), seen: (schema) => schema, lacksScope: false },
};

/** By the path of the list; the actions on no collection have an empty one. */
const known = signal<ReadonlyMap<string, Rights>>(new Map());
const asked = new Set<string>();

export function forgetRights(): void {
  asked.clear();
  known.value = new Map();
}

/** Lists of other kinds are shown to those alone who may use them. */
function isJudged(list: Listed): boolean {
  return isCollection(list) || list.tag === 'users';
}

/** @param list undefined: the actions that are on no collection. @returns undefined until the server has answered */
export function rightsIn(list: Listed | undefined): Rights | undefined {
  if (list !== undefined && !isJudged(list)) return unrestricted;
  const path = list?.path ?? '';
  const found = known.value.get(path);
  if (found !== undefined || asked.has(path)) return found;
  asked.add(path);
  void readRights(list).then((rights) => {
    // Another caller may have entered meanwhile.
    if (asked.has(path)) known.value = new Map([...known.value, [path, rights]]);
  });
  return undefined;
}

/** @param id of the document; absent: any. A server that does not answer leaves each refusal to the request itself. */
export async function readRights(list: Listed | undefined, id?: string): Promise<Rights> {
  if (list !== undefined && !isJudged(list)) return unrestricted;
  const query = new URLSearchParams({
    account: 'me',
    ...(list === undefined ? {} : { collection: list.name }),
    ...(id === undefined ? {} : { id }),
  });
  const reply = await send('GET', `${base.value}/meta/access?${query}`).catch(() => undefined);
  if (reply?.status !== 200 || !isObject(reply.json)) return unrestricted;
  return rightsOf(reply.json as unknown as AccessReport, list);
}

/** @param tag of the version that is shown: rules may look at the document. @returns undefined until the server has answered */
export function useRights(list: Listed, id: string, tag: string | null | undefined): Rights | undefined {
  const [rights, setRights] = useState<Rights | undefined>(undefined);
  useEffect(() => {
    let isCurrent = true;
    if (tag !== undefined) void readRights(list, id).then((found) => isCurrent && setRights(found));
    return () => {
      isCurrent = false;
    };
  }, [list, id, tag]);
  return rights;
}

function rightsOf({ id, operations, members }: AccessReport, list: Listed | undefined): Rights {
  const isNo = (answer: string | undefined) => answer === 'never' || answer === 'no';
  const writable = new Set(
    members
      .filter(({ write }) => !isNo(write.answer) || (id === null && write.reason === 'fixed'))
      .map(({ name }) => name),
  );
  const told = new Set(members.map(({ name }) => name));
  // Members that a report of a collection leaves out are hidden from the caller; accounts have others, such as a password.
  const isWhole = list !== undefined && isCollection(list);
  const decisionOn = (operation: Operation) => operations.find(({ name }) => name === operation);
  return {
    may: (operation) => !isNo(decisionOn(operation)?.answer),
    mayCall: ({ method, path }) =>
      !isNo(operations.find(({ requests }) => requests.includes(`${method} ${path}`))?.answer),
    closed: (names) => new Set([...names].filter((name) => (told.has(name) ? !writable.has(name) : isWhole))),
    seen: (schema) => ({
      ...schema,
      properties: Object.fromEntries(
        Object.entries(schema.properties ?? {}).filter(([name]) => told.has(name) || !isWhole),
      ),
    }),
    lacksScope: decisionOn('update')?.reason === 'scope',
  };
}
