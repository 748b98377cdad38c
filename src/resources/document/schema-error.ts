/** The part of TypeBox's validation errors that this room words for clients. */
export type SchemaError = {
  readonly keyword: string;
  readonly schemaPath: string;
  /** A JSON Pointer into the document. */
  readonly instancePath: string;
  readonly params: object;
  readonly message: string;
};
