/**
 * Validation of a document against its collection's schema (surface, "400 or 422"): what is missing and what is
 * invalid are told apart, because a missing required field is 400 in POST and PUT and everything else 422.
 *
 * The schema is compiled once by TypeBox, with `new Function` where the process allows that; where it does not
 * (`--disallow-code-generation-from-strings`), TypeBox interprets the schema, about 40 times slower.
 */
import { Compile } from 'typebox/compile';
import type { Json } from '../../http/syntax/json.ts';
import type { Collection } from '../../model/collection.ts';
import { closeSchema } from './closed-schema.ts';
import { compileDefaults, type FillDefaults } from './defaults.ts';
import type { SchemaError } from './schema-error.ts';
import { type Faults, sortErrors } from './schema-errors.ts';
import { withErrorsMax } from './schema-errors-limit.ts';

export type Validator = {
  /** At most `errorsMax` faults of each kind; none when the value is sound. */
  readonly check: (value: unknown) => Faults;
  /** Undefined where the schema has no defaults. */
  readonly fillDefaults: FillDefaults | undefined;
};

/** Errors that one answer lists. */
export const errorsMaxDefault = 20;

/** Errors that are looked at before sorting; a fault beyond these can no longer turn a 422 into a 400. */
const errorsExaminedMax = 500;

const sound: Faults = { missing: [], invalid: [] };

/**
 * Made once for each collection, at start.
 * Throws where the schema cannot be compiled, for instance because a pattern is no regular expression.
 */
export function compileValidator(
  collection: Pick<Collection, 'schema'>,
  errorsMax: number = errorsMaxDefault,
): Validator {
  const schema = closeSchema(collection.schema);
  const compiled = Compile(schema);
  const listErrors = (value: unknown): readonly SchemaError[] =>
    withErrorsMax(errorsExaminedMax, () => compiled.Errors(value));
  const fillDefaults = compileDefaults(collection.schema) as ((value: Json) => Json) | undefined;
  return {
    check: (value) => (compiled.Check(value) ? sound : sortErrors(listErrors(value), errorsMax)),
    fillDefaults,
  };
}
