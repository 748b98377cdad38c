/**
 * Twilio: the HMAC-SHA1 of the URL that it called, followed by the parameters of a form body, keyed with the auth token. A body that is no
 * form is covered by its SHA-256 in the parameter `bodySHA256` of the URL. Nothing stands between names and values, so that whoever holds a
 * signed message may move the border between a name and its value: Twilio's scheme allows it.
 *
 * The URL is the one that is configured at Twilio, with its query: a proxy that changes scheme or path changes what was signed.
 */
import type { SenderRule } from './sender-rule.ts';

export const twilio: SenderRule = {
  signature: {
    kind: 'hmac',
    header: 'x-twilio-signature',
    hash: 'sha1',
    encoding: 'base64',
    prefix: '',
    separator: null,
    signed: '{url}{form}',
    key: 'text',
    toleranceSeconds: 0,
    bodyDigestParameter: 'bodySHA256',
  },
  // The same when Twilio tries again. A MessageSid is that of a message, of which each status is told.
  dedupe: [{ header: 'i-twilio-idempotency-token' }, { json: '/0/id' }],
  type: [
    [{ form: 'EventType' }],
    [{ form: 'MessageStatus' }],
    [{ form: 'CallStatus' }],
    // Event Streams send arrays of CloudEvents.
    [{ json: '/0/type' }],
  ],
  keep: ['i-twilio-idempotency-token', 'user-agent'],
};
