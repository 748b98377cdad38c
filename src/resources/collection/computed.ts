/**
 * Computed fields (model/collection.ts): each write computes them from the fields that clients write, after the hooks
 * of the collection, and stores them with the document.
 */

import type { Members } from '../../model/json-value.ts';
import { callAs } from '../../observe/running-function.ts';
import { withInstants } from '../document/propose.ts';
import { type FieldsOrWritten, WrittenFields } from '../document/representation.ts';
import type { Served } from './served.ts';

/** The fields with those that are computed from them. A value that does not fit its schema is a fault of the application. */
export function withComputed(
  { collection, validator }: Pick<Served, 'collection' | 'validator'>,
  fields: FieldsOrWritten,
): FieldsOrWritten {
  const { computed, name: of } = collection;
  if (computed === undefined) return fields;
  const given = fields instanceof WrittenFields ? (JSON.parse(fields.text) as object) : fields;
  const whole: Record<string, unknown> = { ...given };
  for (const name of computed.keys()) delete whole[name];
  const own = { ...whole };
  for (const [name, compute] of computed) {
    try {
      const by = { named: `the computed field ${name} of ${of}` };
      const value: unknown = callAs(by, compute, { ...own } as never);
      if (value !== undefined) whole[name] = value;
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      throw new Error(`the computed field ${name} of ${of} failed: ${message}`, { cause: error });
    }
  }
  const kept = withInstants(validator, whole as Members);
  const { missing, invalid } = validator.check(kept);
  const [fault] = [...missing, ...invalid];
  if (fault !== undefined)
    throw new Error(`a computed field of ${of} does not fit its schema: ${fault.pointer} ${fault.message}`);
  return kept;
}
