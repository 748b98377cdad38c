/**
 * Checks that every example would be accepted by a POST: people copy them, and so does the start-up text. References
 * are not followed; an example may name a resource that is not there yet.
 */
import { Errors } from 'typebox/value';
import { type Inspection, isRecord, kindOf, listed } from './inspection.ts';

const errorsShownMax = 3;

export function inspectExamples(inspection: Inspection): void {
  const { schema } = inspection.declaration;
  listed(inspection, 'examples', inspection.declaration.examples).forEach((example, index) => {
    const place = `examples[${index}]`;
    if (!isRecord(example)) {
      inspection.refuse(`${place} must be an object, not ${kindOf(example)}`);
      return;
    }
    const { additionalProperties: additional } = schema as { additionalProperties?: unknown };
    const open = additional !== undefined && additional !== false;
    const unknown = open
      ? []
      : Object.keys(example).filter((name) => !Object.hasOwn(schema.properties, name));
    for (const name of unknown) inspection.refuse(`${place} has the member "${name}", which is not a field`);
    for (const error of Errors(schema, example).slice(0, errorsShownMax)) {
      inspection.refuse(`${place}${error.instancePath} is not valid: ${error.message}`);
    }
  });
}
