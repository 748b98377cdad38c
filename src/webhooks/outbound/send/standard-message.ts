/**
 * The message of Standard Webhooks (§2.7) that an event becomes, and its signatures `v1a`. One event often goes to many endpoints in the
 * same second: body, id and time are then the same octets for all of them, and so are the signatures of the instance's keys, which cost
 * twenty times what those of a secret do.
 */
import { standardPrefix } from '../../signature/standard.ts';
import type { WebhookKeys } from '../keys/webhook-keys.ts';
import { objectOf } from './event-object.ts';
import type { SentEvent } from './event-source.ts';

export type StandardMessage = {
  readonly body: Buffer;
  /** In base64, one of each key. @param timestamp Unix seconds */
  signatures(id: string, timestamp: number): Promise<readonly string[]>;
};

/**
 * @param doc the event as the owner of the endpoint may see it; messages are shared where that is all of it
 * @returns undefined where there is no resource in it
 */
export type StandardMessages = (event: SentEvent, type: string, doc: string) => StandardMessage | undefined;

export function createStandardMessages(keys: Pick<WebhookKeys, 'sign'>): StandardMessages {
  // As long as the event is in memory.
  const shared = new WeakMap<SentEvent, StandardMessage>();
  return (event, type, doc) => {
    const isWhole = doc === event.doc;
    const found = isWhole ? shared.get(event) : undefined;
    if (found !== undefined) return found;
    const object = objectOf(doc);
    if (object === undefined) return undefined;
    // The time is the event's, the same at each attempt; that of the attempt stands in `webhook-timestamp`.
    const at = new Date(event.createdAt).toISOString();
    const made = new Message(`{"type":${JSON.stringify(type)},"timestamp":"${at}","data":${object}}`, keys);
    if (isWhole) shared.set(event, made);
    return made;
  };
}

class Message implements StandardMessage {
  readonly body: Buffer;
  readonly #keys: Pick<WebhookKeys, 'sign'>;
  #prefix = '';
  #signatures: Promise<readonly string[]> = Promise.resolve([]);

  constructor(content: string, keys: Pick<WebhookKeys, 'sign'>) {
    this.body = Buffer.from(content);
    this.#keys = keys;
  }

  signatures(id: string, timestamp: number): Promise<readonly string[]> {
    const prefix = standardPrefix(id, timestamp);
    if (prefix !== this.#prefix) {
      this.#prefix = prefix;
      this.#signatures = this.#keys.sign(Buffer.concat([Buffer.from(prefix), this.body]));
    }
    return this.#signatures;
  }
}
