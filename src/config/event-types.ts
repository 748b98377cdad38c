/**
 * Types of events that applications post (§2.6): their declaration and the grammar of their names. The types of resource writes follow from
 * the collections and cannot be declared; those of endpoints are reserved.
 */

import { type TObject, Type } from 'typebox';
import { eventTypeCharactersMax } from '../model/event.ts';
import { CompiledSchema, type SchemaNode } from './declared-schema.ts';
import { schemaMistakes } from './inspect-schema.ts';
import { isRecord, kindOf } from './inspection.ts';
import { descriptionShape, inspectShape, listInParts, namedParts, type Reporter, unshaped } from './shape.ts';

/** What a user writes under `eventTypes`, by type: `invoice.paid`. */
export type EventTypeDeclaration = {
  readonly description?: string;
  /** TypeBox object of `data.object`; a posted event that does not match is refused (422). Without it, any object is accepted. */
  readonly schema?: TObject;
  /** Complete `data.object`s; the first is the sample. */
  readonly examples?: readonly Readonly<Record<string, unknown>>[];
};

export type DeclaredEventType = {
  readonly description: string;
  readonly schema: TObject | undefined;
  readonly examples: readonly Readonly<Record<string, unknown>>[];
};

/** Segments, joined by dots. */
export const eventTypeSpelling = /^[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*$/;
const writes: ReadonlySet<string> = new Set(['created', 'updated', 'deleted']);
const eventTypeShape = Type.Object(
  {
    ...unshaped('schema'),
    description: descriptionShape,
    examples: Type.Optional(listInParts(Type.Unknown())),
  },
  { calls: 'property of an event type' },
);
const errorsShownMax = 3;

/** What is wrong with the spelling of a type, as the predicate of a sentence; undefined for a valid one. */
export function eventTypeFault(type: string): string | undefined {
  if (type.length > eventTypeCharactersMax) return `must have at most ${eventTypeCharactersMax} characters`;
  return eventTypeSpelling.test(type)
    ? undefined
    : 'must be segments of letters, digits, _ and -, joined by dots';
}

/** True if the type is reserved for Comity's own events about endpoints. */
export function isOperationalType(type: string): boolean {
  return type === 'endpoint' || type.startsWith('endpoint.');
}

/** The name of the collection whose writes emit this type. */
export function collectionOfType(
  type: string,
  collections: { has(name: string): boolean },
): string | undefined {
  const dot = type.indexOf('.');
  const name = type.slice(0, Math.max(0, dot));
  return collections.has(name) && writes.has(type.slice(dot + 1)) ? name : undefined;
}

/**
 * @param written the member `eventTypes` of a configuration
 * @param collections names of the declared collections
 */
export function inspectEventTypes(
  written: unknown,
  collections: ReadonlySet<string>,
  mistakes: string[],
): ReadonlyMap<string, DeclaredEventType> {
  const found = new Map<string, DeclaredEventType>();
  const report: Reporter = (sentence) => void mistakes.push(sentence);
  for (const [type, declaration] of namedParts(written, 'eventTypes', report)) {
    const refuse: Reporter = (predicate) => report(`event type ${type}: ${predicate}`);
    inspectName(type, collections, refuse);
    const sound = inspectShape(eventTypeShape, declaration, '', refuse);
    if (sound === undefined) continue;
    const { description = '', schema, examples = [] } = sound;
    if (schema === undefined || inspectSchema(schema, refuse)) inspectExamples(examples, schema, refuse);
    found.set(type, { description, schema: schema as TObject | undefined, examples: examples as Example[] });
  }
  return found;
}

type Example = DeclaredEventType['examples'][number];

function inspectName(type: string, collections: ReadonlySet<string>, refuse: Reporter): void {
  const fault = eventTypeFault(type);
  if (fault !== undefined) refuse(`the name ${fault}`);
  else if (isOperationalType(type)) refuse('names that begin with endpoint are reserved for Comity');
  else if (collectionOfType(type, collections) !== undefined) {
    refuse('writes of a collection emit this type already, with the schema of the collection');
  }
}

function inspectSchema(schema: unknown, refuse: Reporter): schema is TObject {
  if (!isRecord(schema) || schema.type !== 'object' || !isRecord(schema.properties)) {
    refuse('schema must be a Type.Object({ ... })');
    return false;
  }
  const mistakes = schemaMistakes(schema, 'schema');
  for (const mistake of mistakes) refuse(mistake);
  return mistakes.length === 0;
}

function inspectExamples(examples: readonly unknown[], schema: unknown, refuse: Reporter): void {
  examples.forEach((example, index) => {
    const place = `examples[${index}]`;
    if (!isRecord(example)) refuse(`${place} must be an object, not ${kindOf(example)}`);
    else if (schema !== undefined) inspectExample(example, schema as TObject, place, refuse);
  });
}

/** Checks an example like a posted event: an undeclared member is a mistake unless the object is open. */
function inspectExample(
  example: Readonly<Record<string, unknown>>,
  schema: TObject,
  place: string,
  refuse: Reporter,
): void {
  const { additionalProperties: additional } = schema as { additionalProperties?: unknown };
  if (additional === undefined || additional === false) {
    for (const name of Object.keys(example)) {
      if (!Object.hasOwn(schema.properties, name))
        refuse(`${place} has the member "${name}", which is not declared`);
    }
  }
  const root = schema as object as SchemaNode;
  const compiled = new CompiledSchema(root);
  if (compiled.check(example)) return;
  for (const { pointer, message } of compiled.faultsOf(root, example, errorsShownMax))
    refuse(`${place}${pointer} is not valid: ${message}`);
}
