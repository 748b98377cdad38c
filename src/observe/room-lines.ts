/** What the log says of facts that rooms report: a level, and a sentence that never changes. The members of the fact stand beside it. */
import type {
  AccountObservation,
  ConnectionObservation,
  ReceivedObservation,
  WebhookObservation,
} from './observation.ts';

export type Line = {
  readonly level: 'debug' | 'info' | 'warn' | 'error' | 'fatal';
  readonly message: string;
};

export const roomLines: Readonly<
  Record<
    (AccountObservation | WebhookObservation | ReceivedObservation | ConnectionObservation)['kind'],
    Line
  >
> = {
  'login-judged': { level: 'debug', message: 'login judged' },
  'session-reused': { level: 'warn', message: 'a refresh token came twice: its session was ended' },
  'hashing-refused': { level: 'warn', message: 'too many passwords wait to be hashed' },
  'mail-sent': { level: 'debug', message: 'mail sent' },
  'mail-delayed': { level: 'warn', message: 'mail not sent yet' },
  'mail-given-up': { level: 'error', message: 'mail given up' },
  'signing-key-made': { level: 'info', message: 'signing key made' },
  'signing-key-retired': { level: 'info', message: 'signing key retired' },
  'secret-key-made': {
    level: 'info',
    message: 'a key that encrypts secrets was made: keep a copy apart from the backups',
  },
  'secrets-encrypted': { level: 'info', message: 'stored secrets were encrypted' },
  'issuer-failed': { level: 'error', message: 'trusted issuer cannot be asked' },
  'provider-failed': { level: 'error', message: 'identity provider did not answer as it should' },
  'delivery-attempted': { level: 'debug', message: 'delivery attempted' },
  'endpoint-left-alone': { level: 'warn', message: 'an endpoint fails and is left alone for a while' },
  'endpoint-answers-again': { level: 'info', message: 'an endpoint answers again' },
  'endpoint-failing': { level: 'warn', message: 'an endpoint fails for long: its owner was told' },
  'endpoint-disabled': { level: 'warn', message: 'an endpoint was disabled' },
  'egress-refused': { level: 'info', message: 'a destination was refused by the egress guard' },
  'lanes-held': { level: 'debug', message: 'sends for a part of the endpoints' },
  'sending-failed': { level: 'error', message: 'sending webhooks failed' },
  'webhook-received': { level: 'debug', message: 'webhook received' },
  'received-handed-on': { level: 'debug', message: 'received message handed on' },
  'sender-paused': {
    level: 'warn',
    message: 'messages of a sender cannot be handed on and wait for a while',
  },
  'handler-thread-ended': { level: 'warn', message: 'a thread of handlers was ended' },
  'receiving-failed': { level: 'error', message: 'receiving webhooks failed' },
  'certificate-loaded': { level: 'info', message: 'certificate loaded' },
  'certificate-failed': {
    level: 'error',
    message: 'the changed certificate cannot be used; the one before stays',
  },
  'http2-cut': { level: 'info', message: 'an HTTP/2 connection was closed because of its client' },
  'memory-refused': { level: 'warn', message: 'no memory for more at once (COMITY_MEMORY_BYTES_MAX)' },
  'websocket-closed': { level: 'debug', message: 'WebSocket closed' },
  'tunnel-refused': { level: 'info', message: 'tunnel refused' },
  'tunnel-reported': { level: 'warn', message: 'a tunnel was opened that the list of hosts would refuse' },
  'tunnel-opened': { level: 'info', message: 'tunnel opened' },
  'tunnel-closed': { level: 'info', message: 'tunnel closed' },
  'connection-failed': { level: 'error', message: 'a connection failed' },
  'audit-dropped': { level: 'error', message: 'facts are missing in the audit trail' },
};
