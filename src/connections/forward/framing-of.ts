/**
 * Whether a request has content and how it goes on framed (RFC 9112 §6). HTTP/1.1 says so in its fields; HTTP/2 does not have to (RFC 9113 §8.1),
 * so there what comes first, octets or the end, is waited for.
 */
import type { ForwardCall } from '../proxy.ts';
import { awaitsContinue, type Framing } from './forwarded-fields.ts';

/** A client that waits for 100 (Continue) sends nothing before the destination says it, so its content is taken on trust. */
export async function framingOf({ request, content, signal }: ForwardCall): Promise<Framing> {
  const { fields, version } = request;
  if (fields.contentLength !== undefined) return { kind: 'length', length: fields.contentLength };
  if (fields.transferEncoding !== undefined) return { kind: 'chunked' };
  if (version !== '2.0') return { kind: 'none' };
  if (!awaitsContinue(request) && content.readableLength === 0 && !content.readableEnded && !signal.aborted) {
    await new Promise<void>((resolve) => {
      const settle = (): void => {
        for (const event of ['readable', 'end', 'close']) content.off(event, settle);
        signal.removeEventListener('abort', settle);
        resolve();
      };
      for (const event of ['readable', 'end', 'close']) content.on(event, settle);
      signal.addEventListener('abort', settle);
    });
  }
  const isEmpty = content.readableLength === 0 && !awaitsContinue(request);
  return isEmpty ? { kind: 'none' } : { kind: 'chunked' };
}
