/** Files in the input of an action (`upload({ bytesMax })`), which come as parts of multipart/form-data (RFC 7578). */
import type { TUnsafe } from 'typebox';

/** A file as the client sent it. */
export type Upload = {
  /**
   * The client's name for the file: 1 to 255 octets in UTF-8, without folders, control and invisible characters. It is `file` without a
   * name, or for one of dots alone; a longer name is cut before its extension.
   */
  readonly name: string;
  /** The media type that the client states, in lower case and without parameters: nothing has looked at the content. */
  readonly type: string;
  readonly bytes: Uint8Array;
};

export type UploadRule = {
  /** A longer file is refused with 413. */
  readonly bytesMax: number;
  /** `image/png`, or `image/*`. Another type is refused with 422. Default: any. */
  readonly mediaTypes?: readonly string[];
};

const keyword = 'x-comity-upload';

/**
 * A file, as a member of the input of an action with POST, PUT or PATCH: `Type.Object({ photo: upload({ bytesMax: 1_000_000 }) })`. The action
 * then takes multipart/form-data only. Several files: `Type.Array(upload({ ... }), { maxItems: 5 })`.
 */
export function upload({ bytesMax, mediaTypes }: UploadRule): TUnsafe<Upload> {
  const rule = mediaTypes === undefined ? { bytesMax } : { bytesMax, mediaTypes };
  return { type: 'string', format: 'binary', [keyword]: rule } as unknown as TUnsafe<Upload>;
}

/** The rule as it was written; undefined for any other schema. */
export function uploadRule(schema: unknown): UploadRule | undefined {
  return hasRule(schema) ? schema[keyword] : undefined;
}

/** The schema for a description, without what only Comity knows. */
export function withoutRule(schema: object): object {
  const { [keyword]: _, ...described } = schema as { [keyword]?: unknown };
  return described;
}

function hasRule(schema: unknown): schema is { readonly [keyword]: UploadRule } {
  return typeof schema === 'object' && schema !== null && keyword in schema;
}
