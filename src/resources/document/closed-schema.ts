/**
 * Closes a schema: an object that does not say what other properties it takes takes none (a property that
 * nobody declared is a mistake of the client, 422). Works on a copy.
 *
 * Only for schemas in which every object is described by one schema. Composed ones are left as they are declared, and their unknown
 * members are found by unknown-members.ts. What stands in `not` and `contains` is a question about a value, and stays open.
 */
import type { TSchema } from 'typebox';
import { isNode, type SchemaNode } from '../../config/schema-references.ts';

const opening = ['additionalProperties', 'unevaluatedProperties', 'patternProperties'] as const;
const ofMembers = ['properties', 'patternProperties'] as const;
const parts = ['items', 'prefixItems', 'additionalItems', 'additionalProperties', 'anyOf', 'oneOf'] as const;

/** A copy of the schema in which every object is closed unless it says otherwise. */
export function closeSchema(schema: TSchema): TSchema {
  return close(schema as SchemaNode);
}

function close(schema: SchemaNode): SchemaNode {
  const copy: Record<string, unknown> = Object.defineProperties({}, Object.getOwnPropertyDescriptors(schema));
  for (const keyword of ofMembers) {
    const named = schema[keyword];
    if (isNode(named)) {
      copy[keyword] = Object.fromEntries(Object.entries(named).map(([name, part]) => [name, closed(part)]));
    }
  }
  for (const keyword of parts) {
    const part = schema[keyword];
    if (Array.isArray(part)) copy[keyword] = part.map(closed);
    else if (isNode(part)) copy[keyword] = close(part);
  }
  if ('properties' in schema && !opening.some((keyword) => keyword in schema))
    copy.additionalProperties = false;
  return copy;
}

function closed(part: unknown): unknown {
  return isNode(part) ? close(part) : part;
}
