/**
 * Types of events that applications post (§2.6): their declaration and the grammar of their names. The types of resource writes follow from
 * the collections and cannot be declared; those of endpoints are reserved.
 */

import type { TObject } from 'typebox';
import { eventTypeCharactersMax } from '../model/event-pattern.ts';
import { CompiledSchema, type SchemaNode } from './declared-schema.ts';
import { schemaMistakes } from './inspect-schema.ts';
import { isRecord, kindOf } from './inspection.ts';
import { suggestion } from './nearest.ts';

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
const known: ReadonlySet<string> = new Set<keyof EventTypeDeclaration>(['description', 'schema', 'examples']);
const errorsShownMax = 3;
const descriptionCharactersMax = 2000;

/** What is wrong with the spelling of a type, as the predicate of a sentence; undefined for a valid one. */
export function eventTypeFault(type: string): string | undefined {
  if (type.length > eventTypeCharactersMax) return `must have at most ${eventTypeCharactersMax} characters`;
  return eventTypeSpelling.test(type)
    ? undefined
    : 'must be segments of letters, digits, _ and -, joined by dots';
}

/** Whether the type is reserved for Comity's own events about endpoints. */
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
  if (written === undefined) return found;
  if (!isRecord(written)) {
    mistakes.push(`eventTypes must be an object, not ${kindOf(written)}`);
    return found;
  }
  for (const [type, declaration] of Object.entries(written)) {
    const refuse = (predicate: string): void => void mistakes.push(`event type ${type}: ${predicate}`);
    inspectName(type, collections, refuse);
    if (!isRecord(declaration)) {
      refuse(`must be an object, not ${kindOf(declaration)}`);
      continue;
    }
    inspectDeclaration(declaration, refuse);
    const { description = '', schema, examples = [] } = declaration as EventTypeDeclaration;
    found.set(type, { description, schema, examples });
  }
  return found;
}

type Refuse = (predicate: string) => void;

function inspectName(type: string, collections: ReadonlySet<string>, refuse: Refuse): void {
  const fault = eventTypeFault(type);
  if (fault !== undefined) refuse(`the name ${fault}`);
  else if (isOperationalType(type)) refuse('names that begin with endpoint are reserved for Comity');
  else if (collectionOfType(type, collections) !== undefined) {
    refuse('writes of a collection emit this type already, with the schema of the collection');
  }
}

function inspectDeclaration(declaration: Readonly<Record<string, unknown>>, refuse: Refuse): void {
  for (const property of Object.keys(declaration)) {
    if (!known.has(property)) {
      refuse(`"${property}" is not a property of an event type${suggestion(property, known)}`);
    }
  }
  const { description = '', schema, examples = [] } = declaration;
  if (typeof description !== 'string' || description.length > descriptionCharactersMax) {
    refuse(`description must be a string of at most ${descriptionCharactersMax} characters`);
  }
  const sound = schema === undefined || inspectSchema(schema, refuse);
  if (!Array.isArray(examples)) refuse(`examples must be a list, not ${kindOf(examples)}`);
  else if (sound) inspectExamples(examples, schema, refuse);
}

function inspectSchema(schema: unknown, refuse: Refuse): schema is TObject {
  if (!isRecord(schema) || schema.type !== 'object' || !isRecord(schema.properties)) {
    refuse('schema must be a Type.Object({ ... })');
    return false;
  }
  const mistakes = schemaMistakes(schema, 'schema');
  for (const mistake of mistakes) refuse(mistake);
  return mistakes.length === 0;
}

function inspectExamples(examples: readonly unknown[], schema: unknown, refuse: Refuse): void {
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
  refuse: Refuse,
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
