/**
 * Checks that every example would be accepted by a POST: people copy them, and so does the start-up text. References
 * are not followed; an example may name a resource that is not there yet.
 */
import { Errors } from 'typebox/value';
import { type Inspection, isRecord, kindOf, listed } from './inspection.ts';
import { brokenReferences, type SchemaNode } from './schema-references.ts';
import { compileUnknownMembers, isComposed } from './unknown-members.ts';

const errorsShownMax = 3;

export function inspectExamples(inspection: Inspection): void {
  const { schema } = inspection.declaration;
  listed(inspection, 'examples', inspection.declaration.examples).forEach((example, index) => {
    const place = `examples[${index}]`;
    if (!isRecord(example)) {
      inspection.refuse(`${place} must be an object, not ${kindOf(example)}`);
      return;
    }
    for (const name of unknownIn(inspection, example)) {
      inspection.refuse(`${place} has the member "${name}", which is not a field`);
    }
    for (const error of Errors(schema, example).slice(0, errorsShownMax)) {
      inspection.refuse(`${place}${error.instancePath} is not valid: ${error.message}`);
    }
  });
}

function unknownIn({ declaration }: Inspection, example: SchemaNode): readonly string[] {
  const { schema } = declaration;
  if (brokenReferences(schema).length > 0) return [];
  const root: object = schema;
  if (isComposed(root as SchemaNode)) {
    const unknown = compileUnknownMembers(root as SchemaNode, errorsShownMax)(example);
    return unknown.map(({ pointer }) => pointer.slice(1));
  }
  const { additionalProperties: additional } = schema as { additionalProperties?: unknown };
  if (additional !== undefined && additional !== false) return [];
  return Object.keys(example).filter((name) => !Object.hasOwn(schema.properties, name));
}
