/**
 * A part of the document: plain JSON, written as the OpenAPI Specification names its members. The document is checked as a
 * whole against the official schemas in test/openapi, so its parts carry no TypeScript twin of those schemas.
 */

export type Item = Readonly<Record<string, unknown>>;

/** `#/components/{kind}/{name}`; names here never hold the characters that a JSON Pointer escapes. */
export function ref(kind: string, name: string): Item {
  return { $ref: `#/components/${kind}/${name}` };
}
