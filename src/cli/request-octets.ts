/**
 * Asks for octets as they are transferred. `fetch` takes content codings off, and fails where the content is not what its Content-Encoding
 * says; what a sender of webhooks signed has to come out as it came in.
 */
import { once } from 'node:events';
import { type IncomingMessage, request as requestPlain } from 'node:http';
import { request as requestTls } from 'node:https';
import { ignoreError, ownEmitter } from '../observe/own-emitter.ts';

/** Of an answer that was refused; errors are short. */
const refusalCharactersMax = 65_536;

/** @param quietMsMax silence after which it is given up */
export async function requestOctets(
  url: string,
  headers: Readonly<Record<string, string>>,
  quietMsMax: number,
): Promise<IncomingMessage> {
  const request = url.startsWith('https:') ? requestTls : requestPlain;
  const options = { headers: { ...headers, 'Accept-Encoding': 'identity' }, agent: false };
  // A connection that breaks under the answer is told by the request too, when `once` no longer listens.
  const asked = ownEmitter(request(url, options), ignoreError);
  asked.setTimeout(quietMsMax, () =>
    asked.destroy(new DOMException('no octet came in time', 'TimeoutError')),
  );
  asked.end();
  try {
    const [answer] = (await once(asked, 'response')) as [IncomingMessage];
    return answer;
  } catch (error) {
    if (error instanceof Error && error.name === 'TimeoutError') throw error;
    // As fetch has it: the reason is the cause.
    throw new TypeError('the request failed', { cause: error });
  }
}

export async function refusalText(answer: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of answer.setEncoding('utf8')) {
    text += chunk;
    if (text.length > refusalCharactersMax) break;
  }
  return text;
}
