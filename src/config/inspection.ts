/** The common ground of the checks of a configuration: the declaration, where mistakes are reported, and the name that a misspelt one means. */
import type { CollectionDeclaration } from '../model/collection.ts';
import type { Field, Fields } from '../model/field.ts';
import type { Through } from '../model/filter.ts';

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

  constructor(
    mistakes: readonly string[],
    options: Partial<Pick<ConfigurationError, 'cause' | 'settings'>> = {},
  ) {
    super(mistakes.join('\n'), options);
    this.mistakes = mistakes;
    this.settings = options.settings;
  }
}

/** Reads a part whose mistakes are reported with those of others. @returns undefined for mistakes, which are added to the list */
export async function attempt<T>(
  mistakes: ConfigurationError[],
  read: () => T | Promise<T>,
): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    mistakes.push(error);
    return undefined;
  }
}

/** The known name at the least edit distance, if that is at most a third of the length; undefined otherwise. */
export function nearest(name: string, known: Iterable<string>): string | undefined {
  let best: string | undefined;
  let least = Math.floor(name.length / 3) + 1;
  for (const candidate of known) {
    if (Math.abs(candidate.length - name.length) >= least) continue;
    const distance = editDistance(name.toLowerCase(), candidate.toLowerCase());
    if (distance < least) [best, least] = [candidate, distance];
  }
  return best;
}

/** `; did you mean "x"?`, or nothing. */
export function suggestion(name: string, known: Iterable<string>): string {
  const meant = nearest(name, known);
  return meant === undefined ? '' : `; did you mean ${meant}?`;
}

/** Levenshtein's distance, where two neighbours that changed places are one edit; names are short. */
function editDistance(from: string, to: string): number {
  let before: readonly number[] = [];
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let i = 1; i <= from.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= to.length; j += 1) {
      const replaced = (row[j - 1] ?? 0) + (from[i - 1] === to[j - 1] ? 0 : 1);
      const isSwap = i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1];
      const swapped = isSwap ? (before[j - 2] ?? 0) + 1 : replaced;
      next.push(Math.min(replaced, swapped, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    [before, row] = [row, next];
  }
  return row[to.length] ?? 0;
}
