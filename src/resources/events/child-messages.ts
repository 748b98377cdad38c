/**
 * Messages about the children of a document that changed (§6.14). Where a read rule looks through references at other documents, such as
 * `ticketId.customerId`, a change of the ticket takes its comments out of a reader's sight, or into it, without an event of their own. The
 * reader then gets one message for all of them, and only if there is such a comment: who could read none learns nothing.
 *
 * `left` names the reference and its value, unless the reader may not know it or it is several references away. `some` says that not
 * all of them left, or that they are not named: the reader reads again what it shows.
 */
import { valueAt } from '../../http/syntax/json-members.ts';
import { mayRelate, permission, withFields } from '../../model/access.ts';
import { ruleReferencesMax } from '../../model/access-condition.ts';
import { type Collection, visibleWhere } from '../../model/collection.ts';
import { eventType } from '../../model/event.ts';
import type { Field } from '../../model/field.ts';
import {
  allOf,
  along,
  always,
  anyOf,
  type Filter,
  isRelated,
  negated,
  never,
  type Step,
} from '../../model/filter.ts';
import { type Matchable, matches } from '../../model/matches.ts';
import { isAdministrator, type Principal } from '../../model/principal.ts';
import type { TailEntry } from '../../store/store.ts';
import type { ParentLooks } from './parent-looks.ts';
import { fieldInObject, hasFormer, inFormer, ofType } from './visible-events.ts';

export type ChildMessage = {
  readonly kind: 'left' | 'entered';
  /** The type of events by which readers ask for it. */
  readonly type: string;
  readonly text: string;
};

/** The event of a parent. */
type ParentEvent = { readonly entry: TailEntry; readonly value: Matchable['value'] };

const noMessages: readonly ChildMessage[] = [];

/**
 * Decides by what `looks` has found: its owner loads what it lacks and asks again.
 * @param rules those of one reader over the collection of the event
 * @param wanted the children that the reader asks for, as a condition on them
 */
export function childMessages(
  rules: readonly ParentRule[],
  event: ParentEvent,
  looks: ParentLooks,
  wanted: (rule: ParentRule) => Filter,
): readonly ChildMessage[] {
  const change = changeOf(event, looks);
  if (change === undefined) return noMessages;
  let messages = noMessages;
  for (const rule of rules) {
    if (!isAnsweredAnew(rule, change)) continue;
    messages = [...messages, ...messagesOf(rule, change, looks, wanted(rule))];
  }
  return messages;
}

/** True if a condition of the rule has another answer than before the change. Most changes end here, for every reader. */
function isAnsweredAnew({ own }: ParentRule, { before, after }: ParentChange): boolean {
  for (const condition of own) if (before(condition) !== after(condition)) return true;
  return false;
}

type ParentChange = {
  readonly id: string;
  readonly entry: TailEntry;
  readonly isDeletion: boolean;
  /** The answers of a condition on the parent before and after the change. */
  readonly before: (condition: ParentCondition) => boolean;
  readonly after: (condition: ParentCondition) => boolean;
};

function changeOf({ entry, value }: ParentEvent, looks: ParentLooks): ParentChange | undefined {
  const { document: id, type, former } = entry;
  const isDeletion = type.endsWith('.deleted');
  if (id === null || !(isDeletion || (former !== null && type.endsWith('.updated')))) return undefined;
  const was: Matchable = { value, search: null, related: looks.rows.findDeletedToo };
  const is: Matchable = { value, search: null, related: looks.rows.find };
  return {
    ...{ id, entry, isDeletion },
    before: ({ former: before, object }) => matches(isDeletion ? object : before, was),
    after: ({ object }) => !isDeletion && matches(object, is),
  };
}

/** The time when the parent was changed, by its representation. */
function timeOf({ entry: { doc } }: ParentChange): string {
  const at = valueAt(doc, ['data', 'object', 'updatedAt']);
  return typeof at === 'string' ? at : '';
}

function messagesOf(
  rule: ParentRule,
  change: ParentChange,
  looks: ParentLooks,
  wanted: Filter,
): readonly ChildMessage[] {
  if (wanted.op === 'never') return noMessages;
  const [before, after] = rulesAround(rule, change);
  const { collection, path } = rule;
  const reference = path.at(-1)?.field;
  if (reference === undefined) return noMessages;
  const named: Filter = { op: 'eq', field: reference, value: change.id };
  const children = along(path.slice(0, -1), named);
  const gone = allOf([children, before, negated(after), wanted]);
  const come = allOf([children, after, negated(before), rule.rule, wanted]);
  const messages: ChildMessage[] = [];
  const say = (kind: ChildMessage['kind'], about: object): void => {
    const where = rule.isNamed ? { where: { [reference.name]: change.id } } : {};
    const text = JSON.stringify({ [kind]: { collection: collection.name, ...where, ...about } });
    messages.push({ kind, type: typeOfChildren(rule), text });
  };
  const left = gone.op !== 'never' && hasLeft(rule, change, looks, gone);
  if (left) {
    const stay = allOf([children, after, wanted]);
    const isSome = !rule.isNamed || (stay.op !== 'never' && looks.hasRow(collection.name, stay) === true);
    say('left', isSome ? { some: true } : {});
  }
  if (come.op !== 'never' && looks.hasRow(collection.name, come) === true) say('entered', {});
  return messages;
}

/** The log is read after the rows, because a child may be changed between the two. */
function hasLeft(rule: ParentRule, change: ParentChange, looks: ParentLooks, gone: Filter): boolean {
  const unchanged: Filter = { op: 'lt', field: revField, value: change.entry.rev };
  const isThere = looks.hasRow(rule.collection.name, allOf([gone, unchanged]));
  if (isThere !== false) return isThere === true;
  const { from, filter } = changedSince(rule, change, gone);
  return looks.hasEvent(from, filter) === true;
}

/** The rule for children of the parent before and after the change of the parent. */
function rulesAround(rule: ParentRule, change: ParentChange): readonly [Filter, Filter] {
  const own = nameOf(rule.path);
  const byLook = new Map(rule.conditions.map((each) => [each.look, each] as const));
  const as = (answerOf: ParentChange['before']): Filter =>
    withLooks(rule.rule, [], (look, path, otherwise) => {
      const condition = byLook.get(look);
      if (condition === undefined) return otherwise;
      const answer = answerOf(condition) ? always : never;
      if (nameOf(path) === own) return answer;
      // Another reference, which may name the parent too.
      const names: Filter = { op: 'eq', field: look.field, value: change.id };
      return anyOf([allOf([names, answer]), allOf([negated(names), otherwise])]);
    });
  return [as(change.before), as(change.after)];
}

/**
 * The filter with looks at other rows replaced.
 * @param replace gets each look as it was, its path, and the look with those within it replaced
 */
function withLooks(
  filter: Filter,
  above: readonly Step[],
  replace: (look: Look, path: readonly Step[], otherwise: Filter) => Filter,
): Filter {
  if ('filters' in filter) {
    const parts = filter.filters.map((part) => withLooks(part, above, replace));
    return filter.op === 'and' ? allOf(parts) : anyOf(parts);
  }
  if (!('filter' in filter)) return filter;
  if (filter.op === 'not') return negated(withLooks(filter.filter, above, replace));
  const path = [...above, { field: filter.field, table: filter.table }];
  const within = withLooks(filter.filter, path, replace);
  return replace(filter, path, within.op === 'never' ? never : { ...filter, filter: within });
}

/** Revisions around a change in which children that were changed too are looked for. */
const revisionsAround = 128;

/**
 * Events of children that were deleted with the parent, or lost the reference, and of those that another request changed between the
 * parent and the look at the rows. The representation before shows that the reader could read them. A deletion of many
 * children is carried out in several units, of which the last deletes the parent.
 */
function changedSince({ collection, rule }: ParentRule, change: ParentChange, gone: Filter): LogLook {
  const type = (kind: 'updated' | 'deleted'): Filter => ofType(eventType(collection.name, kind));
  const isWith: Filter = { op: 'eq', field: revField, value: change.entry.rev };
  const at = timeOf(change);
  const before = (field: Field): Filter =>
    change.isDeletion ? always : anyOf([isWith, { op: 'lte', field, value: at }]);
  const { rev } = change.entry;
  const last = change.isDeletion ? rev : rev + revisionsAround;
  return {
    from: change.isDeletion ? Math.max(0, rev - revisionsAround) : rev,
    filter: allOf([
      { op: 'lte', field: revField, value: last },
      anyOf([
        allOf([type('deleted'), withFields(gone, fieldInObject), before(fieldInObject(updatedField))]),
        allOf([
          ...[type('updated'), hasFormer, inFormer(gone), before({ ...updatedField, within: 'former' })],
          negated(withFields(rule, fieldInObject)),
        ]),
      ]),
    ]),
  };
}

/** A search of the log, from a revision on. */
type LogLook = { readonly from: number; readonly filter: Filter };

const revField: Field = { name: 'rev', path: ['rev'], type: 'integer', column: 'rev' };
const updatedField: Field = { name: 'updatedAt', path: ['updatedAt'], type: 'timestamp' };

/** The fields of events that tell of the resource. */
const resourceIdName = 'data.object.id';
const childId: Field = { name: 'id', path: ['id'], type: 'string', column: 'id' };

/**
 * The query of a stream as a condition on children: types are compared with that of the child's update, ids of resources with the
 * child's, and every other field with the event of the parent.
 */
export function wantedChildren(
  requested: Filter,
  rule: Pick<ParentRule, 'collection'>,
  value: Matchable['value'],
): Filter {
  const type = typeOfChildren(rule);
  const asked: Matchable = {
    search: null,
    value: (field) => (field.column === 'type' ? type : value(field)),
  };
  const convert = (filter: Filter): Filter => {
    if ('filters' in filter) {
      const parts = filter.filters.map(convert);
      return filter.op === 'and' ? allOf(parts) : anyOf(parts);
    }
    if (filter.op === 'not') return negated(convert(filter.filter));
    if ('field' in filter && filter.field.name === resourceIdName) return { ...filter, field: childId };
    return matches(filter, asked) ? always : never;
  };
  return convert(requested);
}

// Read rules that look through references at documents of other collections, prepared for streams (§6.14): which conditions such a rule
// puts on a parent. A change of the parent that changes the answer of one may take its children out of a reader's sight, or into it.

/** A look of a rule at the row that a reference names. */
type Look = Extract<Filter, { readonly op: 'related' }>;

/** A condition of a rule on documents of the parent's collection, as filters over the events of those. */
type ParentCondition = {
  readonly look: Look;
  /** The references from the child to the parent. */
  readonly path: readonly Step[];
  /** Over the representation before an update. */
  readonly former: Filter;
  /** Over the representation that the event has. */
  readonly object: Filter;
};

export type ParentRule = {
  /** The collection whose documents a reader may see by the rule. */
  readonly collection: Collection;
  /** Over the fields of the collection. */
  readonly rule: Filter;
  /** The collection of the parent. */
  readonly parent: string;
  readonly path: readonly Step[];
  /** Those of the rule on documents of the parent's collection, by this path and by others. */
  readonly conditions: readonly ParentCondition[];
  /** Those by this path. */
  readonly own: readonly ParentCondition[];
  /** True if one of them depends on further rows. */
  readonly looksFurther: boolean;
  /** False if the reader may not know the value of the reference. */
  readonly isNamed: boolean;
};

/** By the collection of the parent. */
export type ParentRules = ReadonlyMap<string, readonly ParentRule[]>;

export function parentRulesOf(collections: Iterable<Collection>, principal: Principal): ParentRules {
  const rules = new Map<string, ParentRule[]>();
  if (isAdministrator(principal)) return rules;
  for (const collection of collections) {
    const { read } = collection.access;
    if (!mayRelate(read) || permission(read, 'read', principal) !== 'depends') continue;
    const rule = visibleWhere(collection, read, principal);
    const conditions = [...conditionsOf(rule, [])];
    const paths = new Map(conditions.map(({ path }) => [nameOf(path), path]));
    for (const [name, path] of paths) {
      const parent = path.at(-1)?.table ?? '';
      const ofParent = conditions.filter(({ look }) => look.table === parent);
      const isNamed = path.length === 1 && mayKnow(collection, path[0]?.field, principal);
      const known = rules.get(parent);
      const own = ofParent.filter((each) => nameOf(each.path) === name);
      const looksFurther = own.some(({ object }) => isRelated(object));
      const made = { collection, rule, parent, path, conditions: ofParent, own, looksFurther, isNamed };
      if (known === undefined) rules.set(parent, [made]);
      else known.push(made);
    }
  }
  return rules;
}

function* conditionsOf(filter: Filter, above: readonly Step[]): Generator<ParentCondition> {
  if ('filters' in filter) for (const part of filter.filters) yield* conditionsOf(part, above);
  if (!('filter' in filter)) return;
  if (filter.op === 'not') {
    yield* conditionsOf(filter.filter, above);
    return;
  }
  const path = [...above, { field: filter.field, table: filter.table }];
  const former = inFormer(filter.filter);
  yield { look: filter, path, former, object: withFields(filter.filter, fieldInObject) };
  yield* conditionsOf(filter.filter, path);
}

/** A name for a path of references, equal for equal ones. */
function nameOf(path: readonly Step[]): string {
  return path.map(({ field, table }) => `${field.name} ${table}`).join('\n');
}

/** A hook may remove any member, so nothing of a collection with `afterRead` is named. */
function mayKnow(
  { hidden, hooks }: Collection,
  field: Pick<Field, 'name' | 'path'> | undefined,
  principal: Principal,
): boolean {
  if (field === undefined || hooks?.afterRead !== undefined) return false;
  const hiding = hidden.get(field.name) ?? hidden.get(field.path[0] ?? '');
  return hiding === undefined || permission(hiding, 'read', principal) === 'granted';
}

/** The type of the event of a child's own update, by which a reader asks for messages about it. */
export function typeOfChildren({ collection }: Pick<ParentRule, 'collection'>): string {
  return eventType(collection.name, 'updated');
}

/** Selects, for the store, the events of parents after which a condition of one of the rules has another answer. */
export function parentEvents(rules: Iterable<ParentRule>): Filter {
  return anyOf(
    [...rules].map((rule) => {
      const { own } = rule;
      const differ = own.map(({ former, object }) =>
        anyOf([allOf([former, negated(object)]), allOf([negated(former), object])]),
      );
      return anyOf([
        allOf([ofType(eventType(rule.parent, 'updated')), hasFormer, anyOf(differ)]),
        // What a deleted document referred to may have been deleted with it.
        allOf([
          ofType(eventType(rule.parent, 'deleted')),
          anyOf(own.map(({ object }) => (isRelated(object) ? always : object))),
        ]),
      ]);
    }),
  );
}

/** For each collection, the types by which readers ask for messages about documents that may depend on its documents. */
export function typesByParent(collections: Iterable<Collection>): ReadonlyMap<string, readonly string[]> {
  const all = new Map([...collections].map((collection) => [collection.name, collection] as const));
  const types = new Map<string, Set<string>>();
  for (const collection of all.values()) {
    if (!mayRelate(collection.access.read)) continue;
    let level = new Set([collection.name]);
    for (let depth = 0; depth < ruleReferencesMax; depth += 1) {
      level = new Set(
        [...level].flatMap((name) => all.get(name)?.references ?? []).map((to) => to.collection),
      );
      for (const parent of level) {
        const known = types.get(parent) ?? new Set();
        types.set(parent, known.add(typeOfChildren({ collection })));
      }
    }
  }
  return new Map([...types].map(([parent, each]) => [parent, [...each]]));
}
