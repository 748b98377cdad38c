/**
 * Uploads of files: a short one is a single request with an Idempotency-Key, which is sent again like every write; a longer one goes in chunks
 * (upload-chunks.ts). A browser may send a request twice, or report one that died as 200 without content, so success is the JSON of the file, and
 * never the status alone.
 */
import { ComityError } from './error.ts';
import type { CallOptions, Send } from './send.ts';
import type { SessionStorage } from './session.ts';

/** The options of an upload; `timeout` is that of each request. */
export type UploadOptions = CallOptions & {
  /** The name of the file. Default: that of a `File`. */
  readonly name?: string;
  /** Media type. Default: that of the Blob. The server judges the content. */
  readonly type?: string;
  /**
   * Where the place of an upload is remembered until it is done, such as `localStorage`: after a reload the same file (name, type, size, time of
   * change) for the same field goes on from the octets that the server has. Only for a `File`, and only where it is sent in chunks.
   */
  readonly remember?: SessionStorage;
  /** Called with the octets that the server has, at the start and after each chunk. */
  readonly onProgress?: (sentBytes: number, bytes: number) => void;
};

/** The options of the upload of a field that holds one file. */
export type FieldUploadOptions = UploadOptions & {
  /** The entity tag that the file must have now, which is `ETag` of its `url`, or `*` for any file. Absent: a file is replaced. */
  readonly ifMatch?: string;
};

/** 512 KiB. Longer files are sent in chunks. */
export const wholeBytesMax = 524_288;
/** Sends a file in one request. @returns its JSON */
export async function sendWhole(
  send: Send,
  [method, path]: readonly [method: 'PUT' | 'POST', path: string],
  file: Blob,
  { ifMatch, onProgress, ...options }: FieldUploadOptions,
): Promise<unknown> {
  const { name, type } = described(file, options);
  const bytes = file.size;
  onProgress?.(0, bytes);
  const { body } = await send(method, path, {
    ...pick(options),
    body: file,
    headers: {
      ...(type && { 'Content-Type': type }),
      ...(name && { 'Content-Disposition': `attachment; filename*=UTF-8''${encoded(name)}` }),
      ...(ifMatch && { 'If-Match': ifMatch }),
      ...options.headers,
    },
  });
  const made = body as { readonly id?: unknown; readonly bytes?: unknown } | undefined;
  if (typeof made?.id !== 'string' || made.bytes !== bytes)
    throw unknownAnswer('is not the file that was sent');
  onProgress?.(bytes, bytes);
  return made;
}

export function unknownAnswer(why: string): ComityError {
  return new ComityError('answer_unknown', `the answer ${why}`);
}

export function described(file: Blob, { name, type }: UploadOptions) {
  return { name: name ?? (file as { readonly name?: string }).name, type: type ?? file.type };
}

/** The options that each request of an upload has. */
export function pick({ signal, timeout }: CallOptions): CallOptions {
  return { ...(signal && { signal }), ...(timeout && { timeout }) };
}

/** As in `filename*` (RFC 8187 §3.2.1). */
function encoded(name: string): string {
  return encodeURIComponent(name).replace(/['()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16)}`);
}
