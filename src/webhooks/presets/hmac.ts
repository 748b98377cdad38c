/**
 * The least that a sender can do: an HMAC-SHA256 of the body in hexadecimal. What differs is replaced in the declaration: the field, the
 * hash, the encoding, a prefix.
 *
 * Nothing is known of such a sender's bodies. A member `id` may be that of an order that changes ten times, and nine changes would be
 * taken for repetitions: unless the declaration says where the id of a message stands, only the same body is the same message.
 */
import type { SenderRule } from './sender-rule.ts';

export const hmac: SenderRule = {
  signature: {
    kind: 'hmac',
    header: 'x-signature',
    hash: 'sha256',
    encoding: 'hex',
    prefix: '',
    separator: null,
    signed: '{body}',
    key: 'text',
    toleranceSeconds: 0,
  },
  dedupe: [],
  type: [[{ json: '/type' }]],
  keep: ['user-agent'],
};
