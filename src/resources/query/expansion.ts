/**
 * Compiles `expand=customerId,customerId.organisationId` and `counts=commentCount` (§4.16). A path names referring
 * fields, joined by dots; the documents on the way are included as well. The fields that the caller may not see are
 * refused when the documents are read (relations/related.ts).
 */
import {
  type Count,
  type Expansion,
  expansionTables,
  type Relations,
  ruleTables,
  type Step,
} from '../relations/relations.ts';
import type { Target } from './list-query.ts';
import { cap, type FaultList, listed, type Place, quote } from './query-faults.ts';

export type ExpansionLimits = {
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
