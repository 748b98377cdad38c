/**
 * Selects what a response shows of its documents: the members that `fields` selects, and what `expand` and `counts` add (§4.16).
 *
 * A selection keeps the order of the collection's fields, so the order in the request makes no difference. The owner and
 * the entity tag, which representations do not contain, come last.
 */

import { memberSpan, memberSpans } from '../../http/syntax/json-members.ts';
import { parseQueryString } from '../../http/syntax/query-string.ts';
import type { Field } from '../../model/field.ts';
import {
  type Count,
  type Expansion,
  expansionTables,
  type Relations,
  ruleTables,
  type Step,
} from '../relations/relations.ts';
import type { Asked, Target } from './list-query.ts';
import { cap, FaultList, listed, type Place, quote, unknownField } from './query-faults.ts';

/** What is selected of a representation. */
export type Selected = Pick<Asked, 'select' | 'owner' | 'tag'>;

type Selection =
  | (Selected & {
      readonly ok: true;
      readonly expansion: Expansion | undefined;
    })
  | { readonly ok: false; readonly message: string };

const faultsMax = 1;

const parameters = ['fields', 'expand', 'counts'] as const;

/**
 * Parameters that are lists: `sort=a,b`; `sort=a&sort=b` as clients write that are generated from the OpenAPI document; and `sort[]=a&sort[]=b`,
 * as axios writes an array.
 */
export type ListName = 'sort' | (typeof parameters)[number];

export function isListName(name: string): name is ListName {
  return name === 'sort' || parameters.some((each) => each === name);
}

/** `sort` of `sort[]`; any other name is itself. */
export function withoutBrackets(name: string): string {
  if (!name.endsWith('[]')) return name;
  const plain = name.slice(0, -2);
  return isListName(plain) ? plain : name;
}

/** Reads the query of a single resource: `fields`, `expand` and `counts`, besides `api_key`. @param query undecoded, without `?` */
export function readSelection(
  query: string,
  target: Pick<Target, 'fields' | 'relations' | 'tag'>,
  limits: ExpansionLimits,
): Selection {
  const pairs = parseQueryString(query);
  if (pairs === undefined) return { ok: false, message: 'malformed query string' };
  const given = new Map<string, string>();
  for (const [written, value] of pairs) {
    const name = withoutBrackets(written);
    if (name === 'api_key') continue;
    if (!parameters.some((each) => each === name)) {
      return { ok: false, message: `unknown parameter ${quote(name)}; parameters: ${parameters.join(', ')}` };
    }
    const before = given.get(name);
    given.set(name, before === undefined ? value : `${before},${value}`);
  }
  const faults = new FaultList(faultsMax);
  const list = given.get('fields');
  const selected =
    list === undefined
      ? { select: undefined }
      : selectFields(list.split(','), target, { faults, place: undefined });
  const expansion = compileExpansion(
    { expand: namesIn(given.get('expand'), undefined), counts: namesIn(given.get('counts'), undefined) },
    target,
    { limits, faults },
  );
  const [fault] = faults.faults;
  return fault === undefined ? { ok: true, ...selected, expansion } : { ok: false, message: fault.message };
}

type Selectable = Pick<Target, 'fields' | 'tag'>;

/** Finds the named fields, each once, in the order of the collection; `*` is all of them. */
export function selectFields(
  names: readonly string[],
  target: Selectable,
  into: { readonly faults: FaultList; readonly place: Place },
): Selected {
  const { fields, tag } = target;
  const chosen = new Set<Field>();
  let everything = false;
  for (const name of names) {
    const field = fields.get(name);
    if (field !== undefined) chosen.add(field);
    else if (name === '*') everything = true;
    else if (name === tag?.name) chosen.add(tag);
    else
      into.faults.unprocessable(
        name === '' ? 'fields has an empty field name' : unknownField(name, fields),
        into.place,
      );
  }
  return selectedOf(chosen, everything, target);
}

/** @param everything the representation is selected as a whole */
export function selectedOf(
  chosen: ReadonlySet<Field>,
  everything: boolean,
  { fields, tag }: Selectable,
): Selected {
  const select: Field[] = [];
  let owner: Field | undefined;
  for (const field of fields.values()) {
    if (!chosen.has(field)) continue;
    if (field.column === 'owner') owner = field;
    else select.push(field);
  }
  return {
    select: everything ? undefined : select,
    ...(owner === undefined ? {} : { owner }),
    ...(tag !== undefined && chosen.has(tag) ? { tag } : {}),
  };
}

// Compiles `expand=customerId,customerId.organisationId` and `counts=commentCount` (§4.16). A path names referring fields, joined by
// dots; the documents on the way are included as well. The fields that the caller may not see are refused when the documents are read
// (relations/related.ts).

type ExpansionLimits = {
  /** References that a path may follow one after the other. */
  readonly expandDepthMax: number;
  /** Paths of a request, and names of counts. */
  readonly expandPathsMax: number;
};

export type NamedAt = { readonly text: string; readonly place: Place };

export type ExpansionNames = {
  readonly expand: readonly NamedAt[];
  readonly counts: readonly NamedAt[];
};

type Into = { readonly limits: ExpansionLimits; readonly faults: FaultList };

/** @returns undefined if neither names anything */
export function compileExpansion(
  { expand, counts }: ExpansionNames,
  { fields, relations }: Pick<Target, 'fields' | 'relations'>,
  into: Into,
): Expansion | undefined {
  if (expand.length + counts.length === 0) return undefined;
  checkNumber('expand', expand, into);
  checkNumber('counts', counts, into);
  if (!into.faults.isEmpty) return undefined;
  const steps: OpenStep[] = [];
  for (const path of expand) addPath(path, steps, { relations, fields }, into);
  const counted: Count[] = [];
  for (const count of counts) addCount(count, counted, relations, into);
  const expansion = {
    steps: sorted(steps),
    counts: counted.sort((one, other) => byText(one.name, other.name)),
  };
  const judges = relations === undefined ? [] : judgesOf(expansion, relations);
  return { ...expansion, tables: expansionTables(expansion, judges) };
}

/** The tables at which the rules of all collections of the expansion may look. */
function judgesOf(
  { steps, counts }: Pick<Expansion, 'steps' | 'counts'>,
  from: Relations,
): readonly string[] {
  const judges = (each: readonly Step[], at: Relations): readonly string[] =>
    each.flatMap(({ field, next }) => {
      const target = at.references.get(field);
      return target === undefined ? [] : [...ruleTables(target), ...judges(next, target)];
    });
  const counting = counts.flatMap(({ name }) => {
    const referring = from.counts.get(name);
    return referring === undefined ? [] : ruleTables(referring.from);
  });
  return [...new Set([...judges(steps, from), ...counting])];
}

/** The names of a comma-separated list. */
export function namesIn(text: string | undefined, place: Place): readonly NamedAt[] {
  return text === undefined ? [] : text.split(',').map((name) => ({ text: name, place }));
}

type OpenStep = { readonly field: string; readonly collection: string; readonly next: OpenStep[] };

function checkNumber(
  parameter: string,
  names: readonly NamedAt[],
  { limits: { expandPathsMax }, faults }: Into,
): void {
  const [first] = names;
  if (first === undefined || names.length <= expandPathsMax) return;
  const message = `${parameter} takes at most ${expandPathsMax} names, not ${names.length}`;
  faults.unprocessable(message, first.place);
}

function addPath(
  { text, place }: NamedAt,
  into: OpenStep[],
  { relations, fields }: Pick<Target, 'relations' | 'fields'>,
  { limits: { expandDepthMax }, faults }: Into,
): void {
  const names = text.split('.', expandDepthMax + 1);
  if (names.length > expandDepthMax) {
    const message = `${quote(text)} follows more than ${expandDepthMax} references`;
    faults.unprocessable(message, place);
    return;
  }
  let at: Relations | undefined = relations;
  let steps = into;
  for (const [depth, field] of names.entries()) {
    const target: Relations | undefined =
      depth > 0 || fields.has(field) ? at?.references.get(field) : undefined;
    if (target === undefined) {
      const known =
        depth > 0 ? [] : [...(relations?.references.keys() ?? [])].filter((name) => fields.has(name));
      faults.unprocessable(unknownPath(text, known), place);
      return;
    }
    let step = steps.find((each) => each.field === field);
    if (step === undefined) {
      step = { field, collection: target.collection.name, next: [] };
      steps.push(step);
    }
    steps = step.next;
    at = target;
  }
}

/** @param known the references that may begin a path */
export function unknownPath(text: string, known: readonly string[]): string {
  const references = known.length === 0 ? '' : `; references: ${listed(known)}`;
  return `expand takes references joined by dots, and ${quote(text)} is none${references}`;
}

function addCount(
  { text, place }: NamedAt,
  into: Count[],
  relations: Relations | undefined,
  { faults }: Into,
): void {
  const referring = relations?.counts.get(text);
  if (referring === undefined) {
    const known = [...(relations?.counts.keys() ?? [])];
    const names = known.length === 0 ? 'nothing is counted here' : `counts: ${listed(known)}`;
    faults.unprocessable(`unknown count ${quote(cap(text))}; ${names}`, place);
  } else if (!into.some(({ name }) => name === text)) {
    into.push({ name: text, from: referring.from.collection.name });
  }
}

function sorted(steps: readonly OpenStep[]): readonly Step[] {
  return [...steps]
    .sort((one, other) => byText(one.field, other.field))
    .map(({ field, collection, next }) => ({ field, collection, next: sorted(next) }));
}

function byText(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}

// Reduces a stored representation to the selected members (`fields=`). It cuts the stored text, so values that are not selected are never
// parsed. A nested field keeps its parent objects; an absent field stays absent. Requests without `fields` serve the stored bytes
// instead.

type Members = Map<string, Members | undefined>;

/** @returns a function that reduces the stored text of a JSON object */
export function projection(select: readonly Field[]): (doc: string) => string {
  const selected = buildSelected(select);
  return (doc) => cutMembers(doc, 0, selected) ?? '{}';
}

/**
 * Adds a member at the end of the text of an object.
 * @param path of the object within the document; objects that are missing on it are made
 * @param member its name and value, as JSON
 */
export function withMemberAt(doc: string, [first, ...rest]: readonly string[], member: string): string {
  if (first === undefined) return withMember(doc, member);
  const span = memberSpan(doc, first);
  if (span === undefined)
    return withMember(doc, `${JSON.stringify(first)}:${withMemberAt('{}', rest, member)}`);
  const { start, end } = span;
  return `${doc.slice(0, start)}${withMemberAt(doc.slice(start, end), rest, member)}${doc.slice(end)}`;
}

/** Adds a member at the end of the text of an object. @param member its name and value, as JSON */
export function withMember(doc: string, member: string): string {
  return `${doc.slice(0, -1)}${doc === '{}' ? '' : ','}${member}}`;
}

function buildSelected(select: readonly Field[]): Members {
  const root: Members = new Map();
  for (const { path } of select) {
    let members = root;
    for (const [index, name] of path.entries()) {
      const isLast = index === path.length - 1;
      // A selected parent already includes its members.
      if (members.has(name) && members.get(name) === undefined) break;
      const next: Members | undefined = isLast ? undefined : (members.get(name) ?? new Map());
      members.set(name, next);
      if (next === undefined) break;
      members = next;
    }
  }
  return root;
}

function cutMembers(doc: string, objectAt: number, selected: Members): string | undefined {
  const spans = memberSpans(doc, selected.keys(), objectAt);
  let text = '';
  for (const [name, within] of selected) {
    const span = spans.get(name);
    if (span === undefined) continue;
    const value =
      within === undefined ? doc.slice(span.start, span.end) : cutMembers(doc, span.start, within);
    if (value !== undefined) text += `${text === '' ? '' : ','}${JSON.stringify(name)}:${value}`;
  }
  return text === '' ? undefined : `{${text}}`;
}
