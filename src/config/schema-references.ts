/**
 * References within a schema (JSON Schema 2020-12 §8.2.3.1): `#`, `#/$defs/NAME`, and the `$id` or `$anchor` of a schema within it. Nothing
 * is fetched.
 */

export type SchemaNode = { readonly [keyword: string]: unknown };

export function isNode(value: unknown): value is SchemaNode {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Every named schema, by the reference to it. */
export function namedSchemas(root: SchemaNode): ReadonlyMap<string, unknown> {
  const named = new Map<string, unknown>([['#', root]]);
  if (isNode(root.$defs)) {
    for (const [name, schema] of Object.entries(root.$defs))
      named.set(`#/$defs/${escapePointer(name)}`, schema);
  }
  eachNode(root, (node) => {
    if (typeof node.$id === 'string') named.set(node.$id, node);
    if (typeof node.$anchor === 'string') named.set(`#${node.$anchor}`, node);
  });
  return named;
}

/** The references that do not resolve. */
export function brokenReferences(schema: object): readonly string[] {
  const root = schema as SchemaNode;
  const named = namedSchemas(root);
  const broken = new Set<string>();
  eachNode(root, ({ $ref }) => {
    if (typeof $ref === 'string' && !named.has($ref)) broken.add($ref);
  });
  return [...broken];
}

/** Keywords whose value is data and holds no schemas. */
const dataKeywords = new Set(['const', 'enum', 'default', 'examples']);
/** Keywords whose value maps names to schemas. */
const mapKeywords = new Set(['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas']);

/** Visits the schema and every schema within it. */
export function eachNode(node: unknown, visit: (node: SchemaNode) => void): void {
  if (Array.isArray(node)) {
    for (const part of node) eachNode(part, visit);
    return;
  }
  if (!isNode(node)) return;
  visit(node);
  for (const [keyword, value] of Object.entries(node)) {
    if (dataKeywords.has(keyword)) continue;
    if (mapKeywords.has(keyword) && isNode(value)) {
      for (const part of Object.values(value)) eachNode(part, visit);
    } else eachNode(value, visit);
  }
}

function escapePointer(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}

export type PlainSchema = Readonly<Record<string, unknown>>;

/** A schema as clients read it: JSON without TypeBox's internal properties. */
export function plainSchema(schema: unknown): PlainSchema {
  const text = JSON.stringify(schema, (name, value: unknown) => (name.startsWith('~') ? undefined : value));
  return JSON.parse(text) as PlainSchema;
}
