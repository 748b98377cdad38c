/**
 * Actions, as a configuration has them, and their answers: requests beyond reading and writing documents (config/define.ts).
 */
import type { TUnsafe } from 'typebox';

export type ActionMethod = 'GET' | 'QUERY' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** What the response of an action is, other than JSON. @template V what its handler returns */
export type Output<V = unknown> = {
  readonly kind: 'text' | 'bytes' | 'stream' | 'redirect';
  /** With parameters. Empty for a redirect. */
  readonly mediaType: string;
  /** Suggested to browsers, which then save the content. */
  readonly fileName?: string | undefined;
  /** Content-Security-Policy of the response; by default `sandbox` where browsers run the content, and none otherwise. */
  readonly securityPolicy?: string | undefined;
  /** The status of a redirect. */
  readonly status?: RedirectStatus | undefined;
  /** Only for the compiler. */
  readonly returns?: V;
};

type RedirectStatus = 303 | 307 | 308;

type OutputOptions = Pick<Output, 'fileName' | 'securityPolicy'>;

/** Octets with what only the handler knows of them. */
export type OutputBytes = {
  readonly bytes: Uint8Array;
  /** With parameters. Default: that of `output.bytes`. */
  readonly mediaType?: string;
  /** Default: that of `output.bytes`. */
  readonly fileName?: string;
  /**
   * With GET and QUERY: a text of up to 255 visible ASCII characters without quotes, which is another one whenever the octets are. Conditional
   * requests and ranges then apply.
   */
  readonly etag?: string;
  /** With GET and QUERY: when the octets last changed. */
  readonly lastModified?: Date;
};

/** Pieces of a stream, in order. */
export type Pieces = AsyncIterable<string | Uint8Array> | Iterable<string | Uint8Array>;

export const output = {
  /** The handler returns a text, which is sent as UTF-8. */
  text: (mediaType = 'text/plain; charset=utf-8', options: OutputOptions = {}): Output<string> => ({
    kind: 'text',
    mediaType,
    ...options,
  }),
  /** The handler returns octets, or an object of them with what it alone knows. */
  bytes: (
    mediaType = 'application/octet-stream',
    options: OutputOptions = {},
  ): Output<Uint8Array | OutputBytes> => ({
    kind: 'bytes',
    mediaType,
    ...options,
  }),
  /** The handler returns what is sent piece by piece. The calls of a generator work only with GET and QUERY, until its stream ends. */
  stream: (mediaType = 'application/octet-stream', options: OutputOptions = {}): Output<Pieces> => ({
    kind: 'stream',
    mediaType,
    ...options,
  }),
  /** The handler returns the URI. 303: get it; 307, 308: repeat the request there, for now or from now on. */
  redirect: (status: RedirectStatus = 303): Output<string> => ({ kind: 'redirect', mediaType: '', status }),
} as const;

export type ActionPlace = 'member' | 'collection' | undefined;

/** What `action` returns. @template On where it may stand @template T the fields of the members that it is for */
export type ActionDeclaration<On extends ActionPlace = ActionPlace, T = never> = {
  readonly method: ActionMethod;
  /** Only for the compiler, like the next. */
  readonly place: On;
  readonly of: (fields: T) => void;
};

// Files in the input of an action (`upload({ bytesMax })`), which come as parts of multipart/form-data (RFC 7578).

/** A file as the client sent it. */
export type Upload = {
  /**
   * The client's name for the file: 1 to 255 octets in UTF-8, in NFC, without folders, control and invisible characters. It is `file` without a
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
