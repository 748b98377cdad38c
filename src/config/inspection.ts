/** The common ground of the checks of one collection: the declaration, and where mistakes are reported. */
import type { CollectionDeclaration } from '../model/collection.ts';
import type { Field, Fields } from '../model/field.ts';
import type { Through } from '../model/reference-path.ts';
import { suggestion } from './nearest.ts';

export type Inspection = {
  readonly name: string;
  readonly declaration: CollectionDeclaration;
  readonly fields: Fields;
  /** Where the references of the collection lead. */
  readonly through?: Through | undefined;
  readonly collections: ReadonlySet<string>;
  /** Receives the predicate of a sentence whose subject is the collection. */
  readonly refuse: (predicate: string) => void;
  readonly warn: (predicate: string) => void;
};

/** The field that a list of the declaration names; reports a name without a field. */
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

/** The list in the property; reports anything else and returns an empty list. */
export function listed(inspection: Inspection, property: string, value: unknown): readonly unknown[] {
  if (value === undefined) return [];
  if (Array.isArray(value)) return value;
  inspection.refuse(`${property} must be a list, not ${kindOf(value)}`);
  return [];
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object'
    ? 'an object'
    : typeof value === 'undefined'
      ? 'undefined'
      : `a ${typeof value}`;
}

/** All mistakes in a configuration, so that people can correct them together. The command line prints them without a stack and exits 2. */
export class ConfigurationError extends Error {
  override readonly name = 'ConfigurationError';
  /** One sentence each, without a final period. */
  readonly mistakes: readonly string[];
  /** `settings` of a configuration that has these mistakes, not checked yet. */
  readonly settings: Readonly<Record<string, unknown>> | undefined;

  constructor(mistakes: readonly string[], options: MistakesOptions = {}) {
    super(mistakes.join('\n'), options);
    this.mistakes = mistakes;
    this.settings = options.settings;
  }
}

type MistakesOptions = Partial<Pick<ConfigurationError, 'cause' | 'settings'>>;
