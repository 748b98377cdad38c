/** Documents in what is sent and answered, as they are or wrapped, such as `{"data": {"title": "A"}, "meta": {}}`. */

import { isMembers, type Members } from './answer.ts';

/** Names under which APIs put a document. */
const wrappers = ['data', 'doc', 'item', 'record', 'result'] as const;

/** The id of a document, as a path has it; undefined where it has none. */
export function idOf(document: unknown, idMember: string): string | undefined {
  const id = isMembers(document) ? (document[idMember] ?? document._id) : undefined;
  return typeof id === 'string' || typeof id === 'number' ? String(id) : undefined;
}

/** The document in an answer: what has an id, or its wrapper has. An empty one where there is none. */
export function documentIn(value: unknown, idMember: string): Members {
  if (!isMembers(value)) return {};
  if (idOf(value, idMember) !== undefined) return value;
  const wrapper = wrappers.find((each) => idOf(value[each], idMember) !== undefined) ?? wrapperOf(value);
  const inner = wrapper === undefined ? undefined : value[wrapper];
  return isMembers(inner) ? inner : value;
}

/** The name under which a document that is sent stands: that of its only member, if it is a wrapper. */
export function wrapperOf(sent: Members): string | undefined {
  const [name, ...others] = Object.keys(sent);
  const isWrapper = wrappers.some((each) => each === name) && others.length === 0;
  return isWrapper && name !== undefined && isMembers(sent[name]) ? name : undefined;
}

/** The members of a document that is sent, without its wrapper. */
export function membersOf(sent: Members): Members {
  const wrapper = wrapperOf(sent);
  return wrapper === undefined ? sent : (sent[wrapper] as Members);
}

/** The document with the change, in its wrapper. */
export function changed(sent: Members, change: Members = {}): Members {
  const wrapper = wrapperOf(sent);
  const members = { ...membersOf(sent), ...membersOf(change) };
  return wrapper === undefined ? members : { [wrapper]: members };
}

/** The members of what was sent that the document does not have as they were sent. */
export function differencesOf(
  document: Members,
  sent: Members,
  names: readonly string[] = Object.keys(membersOf(sent)),
): readonly string[] {
  const members = membersOf(sent);
  return names.filter((name) => JSON.stringify(document[name]) !== JSON.stringify(members[name]));
}

type Operation = { readonly op: 'replace'; readonly path: string; readonly value: unknown };

/** The change as a JSON Patch of the representation. */
export function operationsOf(change: Members): readonly Operation[] {
  const wrapper = wrapperOf(change);
  const prefix = wrapper === undefined ? '' : `/${wrapper}`;
  return Object.entries(membersOf(change)).map(([name, value]) => ({
    op: 'replace',
    path: `${prefix}/${name}`,
    value,
  }));
}
