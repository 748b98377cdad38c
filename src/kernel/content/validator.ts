/**
 * Validates a document against its collection's schema. Missing and invalid are reported separately, because a missing
 * required field is 400 in POST and PUT and everything else is 422. Bounds of indexed text and U+0000, which no schema
 * expresses, are checked here as well. TypeBox compiles the schema once, with `new Function` where the process allows
 * that; otherwise (`--disallow-code-generation-from-strings`) it interprets the schema: 17 µs for a product instead of
 * 0.2.
 */

import type { TSchema } from 'typebox';
import { Settings } from 'typebox/system';
import {
  brokenReferences,
  CompiledSchema,
  compileDefaults,
  type FillDefaults,
  mapParts,
  type SchemaNode,
} from '../../config/declared-schema.ts';
import { compileInstants, type Instants } from '../../config/instants.ts';
import { type Faults, sortErrors } from '../../config/schema-errors.ts';
import {
  compileUnknownMembers,
  decidesFurther,
  declaresMembers,
  type FindUnknownMembers,
  isComposed,
} from '../../config/unknown-members.ts';
import type { FieldError } from '../../http/problem.ts';
import type { Json } from '../../http/syntax/json.ts';
import { formatJsonPointer } from '../../http/syntax/json-pointer.ts';
import type { Collection, TextBound } from '../../model/collection.ts';
import { isMembers, setMember } from '../../model/json-value.ts';
import { memberAt } from '../../model/matches.ts';

export type Validator = {
  /** Returns at most `errorsMax` faults of each kind; none for a valid value. */
  readonly check: (value: unknown) => Faults;
  readonly errorsMax: number;
  /** Defaults, and the kept spelling of instants. */
  readonly fillDefaults: FillDefaults | undefined;
  readonly instants: Instants | undefined;
};

export const errorsMaxDefault = 20;

/** Errors examined before sorting; a missing field beyond them no longer turns a 422 into a 400. */
const errorsExaminedMax = 500;

/** Values of an invalid document examined for faults; at most 10 ms. */
const valuesExaminedMax = 10_000;

const none: readonly FieldError[] = [];
const noUnknownMembers: FindUnknownMembers = () => none;

const sound: Faults = { missing: [], invalid: [] };

/** Throws if the schema cannot be compiled, for instance because a pattern is not a regular expression. */
export function compileValidator(
  { schema: declared, textBounds }: Pick<Collection, 'schema' | 'textBounds'>,
  errorsMax: number = errorsMaxDefault,
): Validator {
  const root: object = declared;
  const missing = brokenReferences(root);
  if (missing.length > 0)
    throw new Error(`the schema refers to ${missing.join(', ')}, which it does not declare`);
  const composed = isComposed(root as SchemaNode);
  const checked: object = composed ? declared : closeSchema(declared);
  const compiled = new CompiledSchema(checked as SchemaNode);
  const unknownMembers = composed
    ? compileUnknownMembers(root as SchemaNode, compiled, errorsMax)
    : noUnknownMembers;
  const findFaults = (value: unknown): Faults => {
    const sample = sampleForFaults(value, valuesExaminedMax);
    const errors = compiled.errors(sample.value);
    return errors.length === 0 ? faultsBeyond(sample.cut) : sortErrors(errors, errorsMax);
  };
  const instants = compileInstants(root as SchemaNode, compiled);
  const fill = compileDefaults(root as SchemaNode);
  const check = (value: unknown): Faults => {
    const faults = compiled.check(value) ? sound : withErrorsMax(errorsExaminedMax, () => findFaults(value));
    const tooLong = textFaults(textBounds, value);
    const nulls = nullCharacterFaults(value);
    const unknown = unknownMembers(value);
    const untimely = instants?.findFaults(value, errorsMax) ?? none;
    if (tooLong.length + nulls.length + unknown.length + untimely.length === 0) return faults;
    const told = new Set(faults.invalid.map(({ pointer }) => pointer));
    const others = [
      ...unknown,
      ...tooLong,
      ...nulls,
      ...untimely.filter(({ pointer }) => !told.has(pointer)),
    ];
    return { ...faults, invalid: [...faults.invalid, ...others].slice(0, errorsMax) };
  };
  return {
    check(value) {
      try {
        return check(value);
      } catch (error) {
        // The stack overflowed.
        if (!(error instanceof RangeError)) throw error;
        return { missing: [], invalid: [{ pointer: '', message: 'is nested too deeply to be checked' }] };
      } finally {
        compiled.forget();
      }
    },
    errorsMax,
    fillDefaults: instants === undefined ? fill : (value) => instants.keep(fill?.(value) ?? value),
    instants,
  };
}

/** The examined sample is valid, so the fault is in one of the arrays that were cut. */
function faultsBeyond(cut: readonly string[]): Faults {
  const message = 'does not match the schema, in its number of items or in a later item';
  const pointers = cut.length === 0 ? [''] : cut;
  return { missing: [], invalid: pointers.map((pointer) => ({ pointer, message })) };
}

const closedParts = [
  ...['properties', 'patternProperties', 'items', 'prefixItems', 'additionalItems', 'additionalProperties'],
  ...['anyOf', 'oneOf'],
];

/**
 * Returns a copy of the schema in which every object is closed unless it allows other properties: an undeclared
 * property is a mistake of the client (422). Only for schemas that describe each object in one place;
 * unknown-members.ts finds the unknown members of composed ones. `not` and `contains` only test a value and stay open.
 */
export function closeSchema(schema: TSchema): TSchema {
  const close = (node: SchemaNode): SchemaNode => {
    const copy = mapParts(node, closedParts, close);
    if (declaresMembers(node) && !decidesFurther(node)) copy.additionalProperties = false;
    return copy;
  };
  return close(schema as SchemaNode);
}

type FaultSample = {
  readonly value: unknown;
  /** Pointers of the arrays that were cut, outer ones first; at most `cutsMax`. */
  readonly cut: readonly string[];
};

const cutsMax = 20;

/**
 * Copies an invalid document for the search for faults, and ends arrays once `valuesMax` values are copied; objects are
 * never cut. TypeBox detects an invalid document of a megabyte in a millisecond, but lists errors at 1 µs an item even
 * when it no longer keeps them: half a million bad items would hold the event loop for 0.7 s.
 */
function sampleForFaults(value: unknown, valuesMax: number): FaultSample {
  const sampling = new Sampling(valuesMax);
  const sample = sampling.copy(value as Json, []);
  return sampling.cut.length === 0 ? { value, cut: [] } : { value: sample, cut: sampling.cut };
}

class Sampling {
  readonly cut: string[] = [];
  #left: number;

  constructor(valuesMax: number) {
    this.#left = valuesMax;
  }

  copy(value: Json, path: (string | number)[]): Json {
    this.#left -= 1;
    if (Array.isArray(value)) return this.#copyItems(value, path);
    if (!isMembers(value)) return value;
    const copy = {};
    for (const name of Object.keys(value)) {
      path.push(name);
      setMember(copy, name, this.copy(value[name] ?? null, path));
      path.pop();
    }
    return copy;
  }

  #copyItems(items: readonly Json[], path: (string | number)[]): Json[] {
    const copy: Json[] = [];
    for (const [index, item] of items.entries()) {
      if (this.#left <= 0) {
        if (this.cut.length < cutsMax) this.cut.push(formatJsonPointer(path));
        break;
      }
      path.push(index);
      copy.push(this.copy(item, path));
      path.pop();
    }
    return copy;
  }
}

/**
 * Refuses U+0000 in every text and member name with either store, because PostgreSQL cannot store it. One fault for
 * each text; for a member name the pointer is that of the object.
 */
function nullCharacterFaults(value: unknown): readonly FieldError[] {
  if (!holdsNull(value)) return none;
  const faults: FieldError[] = [];
  collect(value, [], faults);
  return faults;
}

/** Decides the common case, a document without U+0000, without allocating. */
function holdsNull(value: unknown): boolean {
  if (typeof value === 'string') return value.includes('\0');
  if (typeof value !== 'object' || value === null) return false;
  if (Array.isArray(value)) return value.some(holdsNull);
  for (const name in value) {
    if (name.includes('\0') || holdsNull((value as Readonly<Record<string, unknown>>)[name])) return true;
  }
  return false;
}

function collect(value: unknown, path: readonly string[], faults: FieldError[]): void {
  const fault = (): unknown =>
    faults.push({ pointer: formatJsonPointer(path), message: 'must not contain U+0000' });
  if (typeof value === 'string') {
    if (value.includes('\0')) fault();
  } else if (typeof value === 'object' && value !== null) {
    const members = Object.entries(value);
    if (members.some(([name]) => name.includes('\0'))) fault();
    for (const [name, member] of members) if (!name.includes('\0')) collect(member, [...path, name], faults);
  }
}

const bytesPerUnitMax = 3;

/**
 * Refuses texts that are too long for their indexes (config/collections.ts). Bytes are counted only where the number of
 * UTF-16 units, at most three bytes each, does not decide.
 */
function textFaults(bounds: readonly TextBound[], value: unknown): readonly FieldError[] {
  let faults: FieldError[] | undefined;
  for (const { path, bytesMax } of bounds) {
    const text = memberAt(value, path);
    if (typeof text !== 'string' || text.length * bytesPerUnitMax <= bytesMax) continue;
    if (text.length <= bytesMax && Buffer.byteLength(text) <= bytesMax) continue;
    faults ??= [];
    faults.push({
      pointer: formatJsonPointer(path),
      message: `must be at most ${bytesMax} bytes long in UTF-8, because it is indexed`,
    });
  }
  return faults ?? none;
}

/** Runs `list` with TypeBox's bound on errors, a setting of the whole process, set to `errorsMax` for this one call. */
function withErrorsMax<T>(errorsMax: number, list: () => T): T {
  const { maxErrors } = Settings.Get();
  Settings.Set({ maxErrors: errorsMax });
  try {
    return list();
  } finally {
    Settings.Set({ maxErrors });
  }
}
