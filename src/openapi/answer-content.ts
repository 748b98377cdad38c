/** The content of answers about a collection: one resource, a page of them, an operation under way. */
import { type Item, ref } from './item.ts';
import type { Content } from './operation.ts';
import type { ResourceExamples } from './resource-examples.ts';
import type { SchemaNames } from './schema-names.ts';

export function memberContent({ singular }: SchemaNames, { representation }: ResourceExamples): Content {
  return { 'application/json': withExamples(ref('schemas', singular), representation) };
}

/** The same where `fields` may select members of it. */
export function selectableContent({ singular }: SchemaNames, { representation }: ResourceExamples): Content {
  const schema = { anyOf: [ref('schemas', singular), ref('schemas', `${singular}Selection`)] };
  return { 'application/json': withExamples(schema, representation) };
}

export function listContent({ singular }: SchemaNames, { list: lists }: ResourceExamples): Content {
  return { 'application/json': withExamples(ref('schemas', `${singular}List`), lists) };
}

export const operationContent: Content = { 'application/json': { schema: ref('schemas', 'Operation') } };

/** A Media Type Object, with examples where there are any. */
export function withExamples(schema: Item, examples: Readonly<Record<string, Item>>): Item {
  return Object.keys(examples).length === 0 ? { schema } : { schema, examples };
}
