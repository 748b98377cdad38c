/**
 * Defaults of a schema: "fields left out are removed or reset" (§4.5). A property with a `default` is reset to
 * it, also inside nested objects and the objects of arrays that were given; any other stays absent.
 */
import type { TSchema } from 'typebox';
import type { Json } from '../../http/syntax/json.ts';
import { copyJson, isMembers, type Members, setMember } from './json-value.ts';

/** Gives the value with defaults filled in: the value itself where there is nothing to fill. */
export type FillDefaults = (value: Json) => Json;

type Entry = {
  readonly name: string;
  readonly missing: Json | undefined;
  readonly fill: FillDefaults | undefined;
};

/** Undefined when the schema has no defaults, as most have not. Alternatives (`anyOf` and such) are not entered. */
export function compileDefaults(schema: TSchema): FillDefaults | undefined {
  return compile(schema as Schema);
}

type Schema = { readonly [keyword: string]: unknown };

function compile(schema: Schema): FillDefaults | undefined {
  if (isSchema(schema.items)) {
    const fill = compile(schema.items);
    if (fill !== undefined) return (value) => (Array.isArray(value) ? value.map(fill) : value);
  }
  if (!isSchema(schema.properties)) return undefined;
  const entries: Entry[] = [];
  for (const [name, property] of Object.entries(schema.properties)) {
    if (!isSchema(property)) continue;
    const missing = Object.hasOwn(property, 'default') ? (property.default as Json) : undefined;
    const fill = compile(property);
    if (missing !== undefined || fill !== undefined) entries.push({ name, missing, fill });
  }
  if (entries.length === 0) return undefined;
  return (value) => (isMembers(value) ? fillMembers(value, entries) : value);
}

function fillMembers(value: Members, entries: readonly Entry[]): Members {
  const filled: Members = {};
  for (const name of Object.keys(value)) setMember(filled, name, value[name] ?? null);
  for (const { name, missing, fill } of entries) {
    const standing = Object.hasOwn(filled, name) ? filled[name] : undefined;
    if (standing === undefined) {
      if (missing !== undefined) filled[name] = copyJson(missing);
    } else if (fill !== undefined) filled[name] = fill(standing);
  }
  return filled;
}

function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
