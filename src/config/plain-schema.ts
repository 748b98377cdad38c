/** A schema as clients read it: JSON without the marks that TypeBox keeps beside the keywords. */

export type PlainSchema = Readonly<Record<string, unknown>>;

export function plainSchema(schema: unknown): PlainSchema {
  const text = JSON.stringify(schema, (name, value: unknown) => (name.startsWith('~') ? undefined : value));
  return JSON.parse(text) as PlainSchema;
}
