/**
 * The content of a request as its operation understands it: read, freed of its codings, and parsed (§4.4); or as it came, where the
 * operation is to judge these very octets (§4.14.1).
 */
import type { Request } from '../http/message.ts';
import type { Problem } from '../http/problem.ts';
import type { MediaType } from '../http/syntax/media-type.ts';
import { contentBytesMax, type MessageReading, shortBytesMax } from './message-facts.ts';
import type { Ask } from './resource.ts';
import type { Room } from './room.ts';

export type Taken =
  | { readonly ok: true; readonly bytes: Uint8Array; readonly content: unknown }
  /** `bytes` where it came as far as that. */
  | { readonly ok: false; readonly bytes: Uint8Array | undefined; readonly problem: Problem };

const octetStream: MediaType = { type: 'application/octet-stream', parameters: new Map() };

export async function takeContent(
  { limits, decodeContent, loop }: Room,
  request: Request,
  { codings, mediaType, operation, route }: MessageReading,
  ask: Ask,
): Promise<Taken> {
  if (operation?.understand === undefined) throw new Error('content without a meaning');
  const received = await request.readContent(contentBytesMax(operation, limits));
  if (!received.ok) return { ok: false, bytes: undefined, problem: { code: received.code } };
  let { bytes } = received;
  // Not before it is all here: who waits for the rest of its content keeps nobody waiting.
  await request.memory?.takeTurn(bytes.length);
  if (operation.raw !== true) {
    const decoded = await decodeContent(bytes, codings, request.memory);
    if (!decoded.ok) return { ok: false, bytes: undefined, problem: { code: decoded.code } };
    bytes = decoded.bytes;
    if (bytes.length > (shortBytesMax(operation, limits) ?? bytes.length)) {
      return { ok: false, bytes: undefined, problem: { code: 'content_too_large' } };
    }
    if (mediaType === undefined) throw new Error('content without a media type');
  }
  const begun = loop.begin();
  const asked = operation.understand(ask, bytes, mediaType ?? octetStream);
  loop.end(begun, request, route?.resource.pattern);
  // Verifying a signature takes 10 us; a turn more is worth sparing.
  const understood = asked instanceof Promise ? await asked : asked;
  return understood.ok
    ? { ok: true, bytes, content: understood.value }
    : { ok: false, bytes, problem: understood.problem };
}
