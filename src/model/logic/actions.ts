/**
 * Actions, as a configuration has them, and their answers: requests beyond reading and writing documents (config/define.ts).
 */

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

export type RedirectStatus = 303 | 307 | 308;

export type OutputOptions = Pick<Output, 'fileName' | 'securityPolicy'>;

/** Pieces of a stream, in order. */
export type Pieces = AsyncIterable<string | Uint8Array> | Iterable<string | Uint8Array>;

export const output = {
  /** The handler returns a text, which is sent as UTF-8. */
  text: (mediaType = 'text/plain; charset=utf-8', options: OutputOptions = {}): Output<string> => ({
    kind: 'text',
    mediaType,
    ...options,
  }),
  bytes: (mediaType = 'application/octet-stream', options: OutputOptions = {}): Output<Uint8Array> => ({
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
