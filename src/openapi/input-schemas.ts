/**
 * The schemas of what clients send, and of what they get, from one declaration with defaults. A member with a default may be left out of a
 * request and is in every representation. Generators of clients demand each member whose schema has `default`, whatever `required` says
 * (openapi-typescript: `defaultNonNullable`): requests have it in words, and representations where the member is always there.
 */
import { isNode, mapParts, type SchemaNode } from '../config/declared-schema.ts';
import type { Item } from '../kernel/documentation.ts';

const within = [
  ...['properties', 'patternProperties', 'dependentSchemas', '$defs', 'definitions'],
  ...['items', 'prefixItems', 'additionalProperties', 'unevaluatedProperties', 'contains', 'propertyNames'],
  ...['anyOf', 'oneOf', 'allOf', 'not', 'if', 'then', 'else'],
];

/** Where kernel/content/validator.ts fills in defaults. */
const filledParts: ReadonlySet<string> = new Set(['properties', 'items']);

/** @param isFilled members that are left out get their defaults */
export function inputSchema(schema: Item, isFilled = true): Item {
  const { default: _default, required, ...rest } = described(schema, isFilled);
  const copy = mapParts(rest, within, (part, keyword) =>
    inputSchema(part, isFilled && filledParts.has(keyword)),
  );
  if (!Array.isArray(required)) return copy;
  const demanded = isFilled ? required.filter((name) => !hasDefault(schema, String(name))) : required;
  return demanded.length === 0 ? copy : { ...copy, required: demanded };
}

/** A parameter with its default in words. */
export function inputParameter(parameter: Item): Item {
  if (!isNode(parameter.schema)) return parameter;
  const { description, schema } = described({ ...parameter, default: parameter.schema.default }, true);
  return { ...parameter, description, schema: inputSchema(schema as Item, false) };
}

/** The schema of representations: `default` only where the member is required, and never `readOnly`. */
export function outputSchema(schema: Item): Item {
  const { readOnly: _readOnly, ...declared } = schema;
  const { required } = declared;
  const always: readonly unknown[] = Array.isArray(required) ? required : [];
  const copy = mapParts(declared, within, outputSchema);
  if (!isNode(copy.properties)) return copy;
  const members = Object.entries(copy.properties).map(([name, member]) => {
    if (always.includes(name) || !isNode(member) || !('default' in member)) return [name, member];
    const { default: _default, ...rest } = described(member, true);
    return [name, rest];
  });
  return { ...copy, properties: Object.fromEntries(members) };
}

function hasDefault({ properties }: Item, name: string): boolean {
  const member = isNode(properties) ? properties[name] : undefined;
  return isNode(member) && Object.hasOwn(member, 'default');
}

function described(schema: SchemaNode, isSaid: boolean): SchemaNode {
  if (!isSaid || schema.default === undefined) return schema;
  const note = `Default: \`${JSON.stringify(schema.default)}\`.`;
  const { description } = schema;
  return { ...schema, description: typeof description === 'string' ? `${description} ${note}` : note };
}
