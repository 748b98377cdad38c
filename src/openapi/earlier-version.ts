/**
 * The same document for tools that know only OpenAPI 3.1. Two things are new in 3.2 and must be said otherwise: `query` of a
 * path item becomes the extension `x-query`, and `itemSchema` of a stream becomes text.
 */
import type { Item } from './item.ts';

export const earlierNote =
  'This is the OpenAPI 3.1 view: 3.1 has no QUERY operation, so each stands under the extension `x-query` of its path. `/openapi.json` has them as 3.2 does.';

export function toEarlierVersion(document: Item): Item {
  const paths = document.paths as Readonly<Record<string, Item>>;
  return {
    ...document,
    openapi: '3.1.1',
    paths: Object.fromEntries(Object.entries(paths).map(([path, item]) => [path, earlierPath(item)])),
  };
}

function earlierPath(item: Item): Item {
  return Object.fromEntries(
    Object.entries(item).map(([name, value]) => [name === 'query' ? 'x-query' : name, withoutItems(value)]),
  );
}

function withoutItems(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutItems);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, part]) =>
      name === 'itemSchema' ? ['schema', { type: 'string' }] : [name, withoutItems(part)],
    ),
  );
}
