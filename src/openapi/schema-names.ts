/**
 * Names of collections in schemas and operation ids: `order-lines` is `OrderLines`, a member is an `OrderLine`. The
 * program's own collections declare their names; the others get names that no schema and no path has.
 */

import { type CollectionNames, referenceIn } from '../kernel/documentation.ts';
import type { Resource } from '../kernel/resource.ts';
import type { Collection } from '../model/collection.ts';

/** The declared names of collections, and for the others unused names. */
export function collectionNames(resources: readonly Resource[]): ReadonlyMap<string, CollectionNames> {
  const all = [...givenNames(resources)];
  const given = all.flatMap(([name, names]) => (names === undefined ? [] : [[name, names] as const]));
  const unnamed = all.flatMap(([name, names]) => (names === undefined ? [{ name }] : []));
  const taken = [...ownNames(resources), ...given.flatMap(([, { singular, plural }]) => [singular, plural])];
  return new Map([...schemaNames(unnamed, taken), ...given]);
}

/** The collections whose members are resources, by name. */
export function servedCollections(resources: Iterable<Resource>): ReadonlyMap<string, Collection> {
  const found = new Map<string, Collection>();
  for (const { documentation } of resources) {
    if (documentation !== undefined && 'part' in documentation && documentation.part === 'member')
      found.set(documentation.collection.name, documentation.collection);
  }
  return found;
}

/** Names of the paths and schemas that resources declare. */
function ownNames(resources: Iterable<Resource>): ReadonlySet<string> {
  const found = new Set<string>();
  const gather = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    const reference = referenceIn(value);
    if (reference !== undefined && 'name' in reference) found.add(reference.name);
    for (const part of Object.values(value)) gather(part);
  };
  for (const { documentation, operations } of resources) {
    if (documentation !== undefined && 'name' in documentation) found.add(documentation.name);
    for (const operation of operations.values()) {
      gather([operation.documentation?.takes, operation.documentation?.gives]);
    }
  }
  return found;
}

/** The declared names of every served collection; undefined for a collection that declares none. */
function givenNames(resources: Iterable<Resource>): ReadonlyMap<string, CollectionNames | undefined> {
  const found = new Map<string, CollectionNames | undefined>();
  for (const { documentation } of resources) {
    if (documentation === undefined || !('part' in documentation)) continue;
    found.set(documentation.collection.name, documentation.names);
  }
  return found;
}

/** Names of schemas that every document has. */
const always: readonly string[] = ['Error', 'JsonPatch', 'ProblemDetails'];

/**
 * Returns a pair of names for each collection; all differ.
 * @param taken names of other schemas and paths, which collections may not have
 */
function schemaNames(
  collections: Iterable<Pick<Collection, 'name'>>,
  taken: Iterable<string>,
): ReadonlyMap<string, CollectionNames> {
  const used = new Set([...always, ...taken]);
  const unused = (wanted: string) => {
    let name = wanted;
    for (let number = 2; used.has(name); number += 1) name = `${wanted}${number}`;
    used.add(name);
    return name;
  };
  const names = new Map<string, CollectionNames>();
  for (const { name } of collections) {
    const plural = unused(pascal(name));
    const only = singularOf(name);
    const singular = unused(only === name ? `${pascal(name)}Item` : pascal(only));
    names.set(name, { singular, plural, one: withArticle(words(only)), many: words(name) });
  }
  return names;
}

function pascal(name: string): string {
  return name
    .split(wordBoundary)
    .map((word) => word.slice(0, 1).toUpperCase() + word.slice(1))
    .join('');
}

function words(name: string): string {
  return name
    .split(wordBoundary)
    .join(' ')
    .replace(innerCapital, (letter) => ` ${letter.toLowerCase()}`);
}

function withArticle(noun: string): string {
  return `${startsWithVowel.test(noun) ? 'an' : 'a'} ${noun}`;
}

/** English plurals by rule, not by dictionary: a wrong guess is ugly, never ambiguous. */
function singularOf(plural: string): string {
  if (plural.endsWith('ies') && plural.length > 4) return `${plural.slice(0, -3)}y`;
  for (const ending of ['sses', 'shes', 'ches', 'xes', 'zes']) {
    if (plural.endsWith(ending)) return plural.slice(0, -2);
  }
  const kept = ['ss', 'us', 'is'].some((ending) => plural.endsWith(ending));
  return plural.endsWith('s') && !kept ? plural.slice(0, -1) : plural;
}

const wordBoundary = /[-_.]/;
const innerCapital = /(?<=.)[A-Z]/g;
const startsWithVowel = /^[aeiou]/i;
