/** The content of a request as its operation understands it: read, freed of its codings, and parsed (§4.4). */
import type { Request } from '../http/message.ts';
import type { Problem } from '../http/problem.ts';
import type { MessageReading } from './message-facts.ts';
import type { Ask } from './resource.ts';
import type { Room } from './room.ts';

export type Taken =
  | { readonly ok: true; readonly bytes: Uint8Array; readonly content: unknown }
  /** `bytes` where it came as far as that. */
  | { readonly ok: false; readonly bytes: Uint8Array | undefined; readonly problem: Problem };

export async function takeContent(
  { limits, decodeContent }: Room,
  request: Request,
  { codings, mediaType, operation }: MessageReading,
  ask: Ask,
): Promise<Taken> {
  const received = await request.readContent(limits.bodyBytesMax);
  if (!received.ok) return { ok: false, bytes: undefined, problem: { code: received.code } };
  const decoded = await decodeContent(received.bytes, codings);
  if (!decoded.ok) return { ok: false, bytes: undefined, problem: { code: decoded.code } };
  const { bytes } = decoded;
  if (mediaType === undefined || operation?.understand === undefined) {
    throw new Error('content without a meaning');
  }
  const understood = await operation.understand(ask, bytes, mediaType);
  return understood.ok
    ? { ok: true, bytes, content: understood.value }
    : { ok: false, bytes, problem: understood.problem };
}
