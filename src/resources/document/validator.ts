/**
 * Validation of a document against its collection's schema (surface, "400 or 422"): what is missing and what is
 * invalid are told apart, because a missing required field is 400 in POST and PUT and everything else 422. What no
 * schema says, because it is about bytes and characters, is found in text-faults.ts and null-character.ts.
 *
 * The schema is compiled once by TypeBox, with `new Function` where the process allows that; where it does not
 * (`--disallow-code-generation-from-strings`), TypeBox interprets the schema: 17 µs for a product instead of 0.2.
 */
import { Compile } from 'typebox/compile';
import { brokenReferences, type SchemaNode } from '../../config/schema-references.ts';
import { compileUnknownMembers, type FindUnknownMembers, isComposed } from '../../config/unknown-members.ts';
import type { FieldError } from '../../http/problem.ts';
import type { Json } from '../../http/syntax/json.ts';
import type { Collection } from '../../model/collection.ts';
import { closeSchema } from './closed-schema.ts';
import { compileDefaults, type FillDefaults } from './defaults.ts';
import { sampleForFaults } from './fault-sample.ts';
import { nullCharacterFaults } from './null-character.ts';
import { type Faults, sortErrors } from './schema-errors.ts';
import { withErrorsMax } from './schema-errors-limit.ts';
import { textFaults } from './text-faults.ts';

export type Validator = {
  /** At most `errorsMax` faults of each kind; none when the value is sound. */
  readonly check: (value: unknown) => Faults;
  /** Errors that one answer lists. */
  readonly errorsMax: number;
  /** Undefined where the schema has no defaults. */
  readonly fillDefaults: FillDefaults | undefined;
};

export const errorsMaxDefault = 20;

/** Errors that are looked at before sorting; a fault beyond these can no longer turn a 422 into a 400. */
const errorsExaminedMax = 500;

/** Values of an invalid document that are looked at for faults; 10 ms at most. */
const valuesExaminedMax = 10_000;

const none: readonly FieldError[] = [];
const noUnknownMembers: FindUnknownMembers = () => none;

const sound: Faults = { missing: [], invalid: [] };

/**
 * Made once for each collection, at start.
 * Throws where the schema cannot be compiled, for instance because a pattern is no regular expression.
 */
export function compileValidator(
  { schema: declared, textBounds }: Pick<Collection, 'schema' | 'textBounds'>,
  errorsMax: number = errorsMaxDefault,
): Validator {
  const root: object = declared;
  const missing = brokenReferences(root);
  if (missing.length > 0)
    throw new Error(`the schema refers to ${missing.join(', ')}, which it does not declare`);
  const composed = isComposed(root as SchemaNode);
  const compiled = Compile(composed ? declared : closeSchema(declared));
  const unknownMembers = composed ? compileUnknownMembers(root as SchemaNode, errorsMax) : noUnknownMembers;
  const findFaults = (value: unknown): Faults => {
    const sample = sampleForFaults(value, valuesExaminedMax);
    const errors = withErrorsMax(errorsExaminedMax, () => compiled.Errors(sample.value));
    return errors.length === 0 ? faultsBeyond(sample.cut) : sortErrors(errors, errorsMax);
  };
  const fillDefaults = compileDefaults(declared) as ((value: Json) => Json) | undefined;
  return {
    check: (value) => {
      const faults = compiled.Check(value) ? sound : findFaults(value);
      const tooLong = textFaults(textBounds, value);
      const nulls = nullCharacterFaults(value);
      const unknown = unknownMembers(value);
      if (tooLong.length + nulls.length + unknown.length === 0) return faults;
      return {
        ...faults,
        invalid: [...faults.invalid, ...unknown, ...tooLong, ...nulls].slice(0, errorsMax),
      };
    },
    errorsMax,
    fillDefaults,
  };
}

/** Nothing is wrong with what was looked at, so what is wrong stands in the arrays that were cut. */
function faultsBeyond(cut: readonly string[]): Faults {
  const message = 'does not fit the schema (in its number of items, or far behind)';
  const pointers = cut.length === 0 ? [''] : cut;
  return { missing: [], invalid: pointers.map((pointer) => ({ pointer, message })) };
}
