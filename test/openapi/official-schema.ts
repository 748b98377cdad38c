/** The official schemas of the OpenAPI Initiative, by which documents are judged. */
import { type SpecData, Validator } from '@seriousme/openapi-schema-validator';

/** It keeps the compiled schema of each version: half a second of processor time. */
const validator = new Validator();

/** What the schema of its version, and its references, say against a document; undefined: nothing. */
export async function complaintsAbout(document: unknown): Promise<unknown> {
  const { valid, errors } = await validator.validate(structuredClone(document) as SpecData);
  return valid ? undefined : errors;
}
