/**
 * What every request to somebody else's server needs, be it an issuer or a provider: a line that nobody listens on, and an answer of
 * bounded length.
 */
import { isLoopbackHost } from '../config/oauth-providers.ts';

/** Discovery documents and key sets have some kilobytes. */
const answerBytesMax = 512 * 1024;

/** Whether the address is reached over TLS, or lies on this machine. */
export function isPrivateLine(url: string): boolean {
  if (!URL.canParse(url)) return false;
  const { protocol, hostname } = new URL(url);
  return protocol === 'https:' || (protocol === 'http:' && isLoopbackHost(hostname));
}

/** The content of the answer; undefined: it is too long, and the connection is given up. */
export async function readBounded(response: Response): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  // Leaving the loop cancels the body, and with it the connection.
  for await (const chunk of response.body ?? []) {
    length += chunk.byteLength;
    if (length > answerBytesMax) return undefined;
    chunks.push(chunk);
  }
  const whole = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.byteLength;
  }
  return whole;
}
