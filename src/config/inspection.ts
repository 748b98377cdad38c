/** What the checks of one collection's declaration look at, and where they put what they find. */
import type { CollectionDeclaration } from '../model/collection.ts';
import type { Field, Fields } from '../model/field.ts';
import { suggestion } from './nearest.ts';

export type Inspection = {
  readonly name: string;
  readonly declaration: CollectionDeclaration;
  readonly fields: Fields;
  /** Names of all declared collections. */
  readonly collections: ReadonlySet<string>;
  /** Takes the predicate of a sentence whose subject is the collection. */
  readonly refuse: (predicate: string) => void;
  readonly warn: (predicate: string) => void;
};

/** The field that a list of the declaration names; reports when there is none. */
export function namedField(inspection: Inspection, property: string, name: unknown): Field | undefined {
  if (typeof name !== 'string') {
    inspection.refuse(`${property} must hold names of fields, not ${kindOf(name)}`);
    return undefined;
  }
  const field = inspection.fields.get(name);
  if (field === undefined) {
    const meant = suggestion(name, inspection.fields.keys());
    inspection.refuse(`${property} names "${name}", which is not a field${meant}`);
  }
  return field;
}

/** The list that the property holds; reports and returns none when it is no list. */
export function listed(inspection: Inspection, property: string, value: unknown): readonly unknown[] {
  if (value === undefined) return [];
  if (Array.isArray(value)) return value;
  inspection.refuse(`${property} must be a list, not ${kindOf(value)}`);
  return [];
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** How a sentence calls a value of the wrong kind. */
export function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object'
    ? 'an object'
    : typeof value === 'undefined'
      ? 'undefined'
      : `a ${typeof value}`;
}
