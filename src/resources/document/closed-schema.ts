/**
 * Closes a schema: an object that does not say what other properties it takes takes none (a property that
 * nobody declared is a mistake of the client, 422). Works on a copy.
 *
 * Where an object is composed (`allOf`, or alternatives beside its own properties), no single part knows all the
 * names, so the whole is closed by `unevaluatedProperties` instead of its parts by `additionalProperties`.
 */
import type { TSchema } from 'typebox';

type Schema = { [keyword: string]: unknown };

const opening = ['additionalProperties', 'unevaluatedProperties', 'patternProperties'] as const;
const alternatives = ['anyOf', 'oneOf', 'allOf'] as const;

/** A copy of the schema in which every object is closed unless it says otherwise. */
export function closeSchema(schema: TSchema): TSchema {
  return close(schema as Schema, false);
}

function close(schema: Schema, isPart: boolean): Schema {
  const copy: Schema = Object.defineProperties({}, Object.getOwnPropertyDescriptors(schema));
  const composed = 'allOf' in schema || ('properties' in schema && ('anyOf' in schema || 'oneOf' in schema));
  for (const keyword of ['properties', '$defs'] as const) {
    const named = schema[keyword];
    if (isSchema(named)) {
      copy[keyword] = Object.fromEntries(Object.entries(named).map(([name, part]) => [name, closed(part)]));
    }
  }
  for (const keyword of ['items', 'prefixItems', 'additionalItems', 'contains'] as const) {
    const items = schema[keyword];
    if (Array.isArray(items)) copy[keyword] = items.map((part) => closed(part));
    else if (isSchema(items)) copy[keyword] = closed(items);
  }
  for (const keyword of alternatives) {
    const parts = schema[keyword];
    if (Array.isArray(parts)) copy[keyword] = parts.map((part) => closed(part, isPart || composed));
  }
  const isOpen = opening.some((keyword) => keyword in schema);
  if (!isPart && !isOpen && composed) copy.unevaluatedProperties = false;
  else if (!isPart && !isOpen && 'properties' in schema) copy.additionalProperties = false;
  return copy;
}

function closed(part: unknown, isPart = false): unknown {
  return isSchema(part) ? close(part, isPart) : part;
}

function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
