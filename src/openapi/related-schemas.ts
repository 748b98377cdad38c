/**
 * Describes what `expand` and `counts` add to representations and lists (§4.16): their parameters, which name the paths
 * and counts of the collection, and the members `included` and `counts` of responses.
 */
import type { CollectionLimits, CollectionNames, Item } from '../kernel/documentation.ts';
import type { Collection } from '../model/collection.ts';
import { ref } from './components.ts';

/** A collection among all that the document describes. */
export type Relating = {
  readonly collection: Collection;
  readonly collections: ReadonlyMap<string, Collection>;
  readonly names: ReadonlyMap<string, CollectionNames>;
};

type PathLimits = Pick<CollectionLimits, 'expandDepthMax' | 'expandPathsMax'>;

/** More paths than these are described by their pattern. */
const pathsListedMax = 64;

const expandNote =
  'References to follow, joined by dots: `customerId.organisationId`. `included` has the documents on the way. The entity tag covers them.';
const countsNote = 'Numbers of documents that refer to each document, in `counts`.';

/** `expand` and `counts` as parameters of a query string; none that the collection does not have. */
export function relatedParameters(relating: Relating, limits: PathLimits): readonly Item[] {
  return Object.entries(relatedLists(relating, limits)).map(([name, schema]) => ({
    name,
    in: 'query',
    description: name === 'expand' ? expandNote : countsNote,
    schema,
  }));
}

/** The schemas of `expand` and `counts`, by name; without those that the collection does not have. */
export function relatedLists(relating: Relating, limits: PathLimits): Readonly<Record<string, Item>> {
  const { collection } = relating;
  const { expandDepthMax, expandPathsMax: maxItems } = limits;
  const paths = [...pathsFrom(collection, relating, expandDepthMax)];
  const path: Item =
    paths.length > pathsListedMax
      ? { type: 'string', pattern: '^[^.]+([.][^.]+)*$' }
      : { type: 'string', enum: paths };
  const counts = countNames(collection);
  return {
    ...(paths.length === 0 ? {} : { expand: { type: 'array', items: path, maxItems } }),
    ...(counts.length === 0
      ? {}
      : { counts: { type: 'array', items: { type: 'string', enum: counts }, maxItems } }),
  };
}

/** The members that a response has beside the documents, by name. */
export function relatedMembers(relating: Relating): Readonly<Record<string, Item>> {
  const { collection } = relating;
  const reached = reachedFrom(relating);
  const counts = countNames(collection);
  const number = { type: 'integer', minimum: 0 };
  return {
    ...(reached.length === 0
      ? {}
      : {
          included: {
            description:
              'The documents that `expand` adds, by collection and id. One that the caller may not read is left out like one that does not exist.',
            type: 'object',
            properties: Object.fromEntries(
              reached.map(([name, { singular }]) => [
                name,
                { type: 'object', additionalProperties: ref('schemas', singular) },
              ]),
            ),
          },
        }),
    ...(counts.length === 0
      ? {}
      : {
          counts: {
            description: 'The numbers that `counts` names, by id of the document.',
            type: 'object',
            additionalProperties: {
              type: 'object',
              properties: Object.fromEntries(counts.map((name) => [name, number])),
            },
          },
        }),
  };
}

function* pathsFrom(
  { references }: Collection,
  relating: Relating,
  depth: number,
  before = '',
): Generator<string> {
  if (depth === 0) return;
  for (const { field, collection } of references) {
    const target = relating.collections.get(collection);
    if (target === undefined) continue;
    yield `${before}${field}`;
    yield* pathsFrom(target, relating, depth - 1, `${before}${field}.`);
  }
}

function reachedFrom({
  collection,
  collections,
  names,
}: Relating): readonly (readonly [string, CollectionNames])[] {
  const reached = new Map<string, CollectionNames>();
  const follow = ({ references }: Collection): void => {
    for (const { collection: name } of references) {
      const target = collections.get(name);
      const named = names.get(name);
      if (target === undefined || named === undefined || reached.has(name)) continue;
      reached.set(name, named);
      follow(target);
    }
  };
  follow(collection);
  return [...reached];
}

/** The names that relations/relations.ts knows. */
function countNames({ dependants, fields }: Collection): readonly string[] {
  if (fields.has('counts')) return [];
  const all = dependants.map(({ countAs }) => countAs);
  return all.filter((name) => all.indexOf(name) === all.lastIndexOf(name));
}
