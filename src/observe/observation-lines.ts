/**
 * Each observation as an operator sees it: the level and the message of its line in the log, and whether it counts as a fault in the metrics
 * (`comity_faults_total`). Five lines depend on more than the kind: log.ts completes them.
 */
import type { Observation } from './observation.ts';

export type Line = {
  readonly level: 'debug' | 'info' | 'warn' | 'error' | 'fatal';
  readonly message: string;
  readonly isFault?: true;
};

export const lines: Readonly<Record<Observation['kind'], Line>> = {
  listening: { level: 'info', message: 'listening' },
  draining: { level: 'info', message: 'draining' },
  stopped: { level: 'info', message: 'stopped' },
  answered: { level: 'debug', message: 'answered' },
  'client-error': { level: 'debug', message: 'a client sent something that is not an HTTP request' },
  'connection-refused': {
    level: 'warn',
    message:
      'connection refused: a limit of connections is reached (COMITY_CONNECTIONS_MAX, COMITY_CONNECTIONS_PER_ADDRESS_MAX)',
    isFault: true,
  },
  'accept-failed': { level: 'error', message: 'a connection could not be accepted', isFault: true },
  uncaught: { level: 'fatal', message: 'uncaught error: Comity drains and exits', isFault: true },
  'worker-ended': { level: 'error', message: 'a worker ended and is replaced', isFault: true },
  'stream-cut': { level: 'warn', message: 'event stream cut: its reader is too slow', isFault: true },
  'loop-held': { level: 'warn', message: 'the event loop was held', isFault: true },
  failed: { level: 'error', message: 'request failed', isFault: true },
  'store-opened': { level: 'info', message: 'store opened' },
  'store-migrated': { level: 'info', message: 'store migrated' },
  'store-failed': { level: 'error', message: 'store failed', isFault: true },
  'units-committed': { level: 'debug', message: 'committed' },
  'operation-failed': { level: 'error', message: 'operation failed', isFault: true },
  'rows-purged': { level: 'debug', message: 'purged' },
  'store-following': { level: 'info', message: 'other processes announce their changes with NOTIFY' },
  'processes-differ': { level: 'warn', message: 'start all with the same configuration', isFault: true },
  'clocks-differ': {
    level: 'warn',
    message: 'the clock of another process on the store differs (0: no longer)',
  },
  'function-failed': { level: 'warn', message: 'a function failed: Comity calls it again' },
  'backup-made': { level: 'info', message: 'backup made' },
  'backup-failed': { level: 'error', message: 'a backup failed' },
  'bucket-failed': { level: 'error', message: 'the bucket of files failed', isFault: true },
  'bucket-differs': {
    level: 'error',
    message: 'the bucket of files has other octets than those of a file',
    isFault: true,
  },
  'documents-migrated': { level: 'info', message: 'documents migrated' },
  'documents-unfit': { level: 'warn', message: 'documents may not fit the configuration, and are served' },
  'documents-extended': { level: 'info', message: 'other processes serve a later declaration' },
  'hook-failed': {
    level: 'error',
    message: 'a hook failed; an event was sent without its members',
    isFault: true,
  },
  'nested-hook-failed': {
    level: 'error',
    message: 'a hook failed within a function or a decided deletion',
    isFault: true,
  },
  'function-escaped': { level: 'error', message: 'a function failed where nothing awaits it', isFault: true },
  'login-judged': { level: 'debug', message: 'login judged' },
  'session-reused': {
    level: 'warn',
    message: 'a refresh token was used twice: Comity ended its session',
    isFault: true,
  },
  'hashing-refused': {
    level: 'warn',
    message: 'password refused: too many wait to be hashed',
    isFault: true,
  },
  'mail-sent': { level: 'debug', message: 'mail sent' },
  'mail-delayed': { level: 'warn', message: 'mail not sent: Comity retries', isFault: true },
  'mail-given-up': { level: 'error', message: 'mail given up' },
  'mail-shown': { level: 'info', message: 'mail, shown because there is no mail server' },
  'work-held': {
    level: 'warn',
    message: 'deliveries and mails of this restored copy are held: "comity release" sends them',
  },
  'work-released': { level: 'info', message: 'deliveries and mails of this restored copy were released' },
  'signing-key-made': { level: 'info', message: 'signing key created' },
  'signing-key-retired': { level: 'info', message: 'signing key retired' },
  'secret-key-made': {
    level: 'info',
    message: 'Comity created a key that encrypts secrets: keep a copy of it apart from the backups',
  },
  'secrets-encrypted': { level: 'info', message: 'stored secrets were encrypted' },
  'issuer-failed': {
    level: 'error',
    message: 'the keys of a trusted issuer cannot be fetched',
    isFault: true,
  },
  'provider-failed': {
    level: 'error',
    message: 'identity provider unreachable, or its response is unusable',
    isFault: true,
  },
  'delivery-attempted': { level: 'debug', message: 'delivery attempted' },
  'endpoint-left-alone': {
    level: 'warn',
    message: 'an endpoint failed repeatedly: Comity pauses sending to it',
  },
  'endpoint-answers-again': { level: 'info', message: 'an endpoint responds again' },
  'endpoint-failing': {
    level: 'warn',
    message: 'an endpoint has been failing for long: Comity notified its owner',
    isFault: true,
  },
  'endpoint-disabled': { level: 'warn', message: 'Comity disabled an endpoint' },
  'egress-refused': { level: 'info', message: 'the egress guard refused a destination' },
  'lanes-held': { level: 'debug', message: 'this process sends for a part of the endpoints' },
  'sending-failed': { level: 'error', message: 'sending webhooks failed', isFault: true },
  'webhook-received': { level: 'debug', message: 'webhook received' },
  'received-handed-on': { level: 'debug', message: 'received message handed on' },
  'sender-paused': {
    level: 'warn',
    message: 'messages of a sender failed repeatedly: Comity pauses handing them on',
    isFault: true,
  },
  'handler-thread-ended': { level: 'warn', message: 'Comity ended a thread of handlers', isFault: true },
  'receiving-failed': { level: 'error', message: 'receiving webhooks failed', isFault: true },
  'job-rescheduled': { level: 'warn', message: 'the next run of a job was set by a clock that was ahead' },
  'work-rescheduled': { level: 'warn', message: 'due times of a clock that was ahead were set right' },
  'certificate-loaded': { level: 'info', message: 'certificate loaded' },
  'certificate-failed': {
    level: 'error',
    message: 'the changed certificate cannot be used: Comity keeps the previous one',
    isFault: true,
  },
  'http2-cut': {
    level: 'info',
    message: 'Comity closed an HTTP/2 connection because of what its client did',
    isFault: true,
  },
  'memory-refused': { level: 'warn', message: 'refused for lack of memory (COMITY_MEMORY_BYTES_MAX)' },
  'websocket-closed': { level: 'debug', message: 'WebSocket closed' },
  'tunnel-refused': { level: 'info', message: 'tunnel refused' },
  'tunnel-reported': { level: 'warn', message: 'tunnel opened that the list of hosts would refuse' },
  'tunnel-opened': { level: 'info', message: 'tunnel opened' },
  'tunnel-closed': { level: 'info', message: 'tunnel closed' },
  'connection-failed': { level: 'error', message: 'a connection failed', isFault: true },
  'audit-dropped': { level: 'error', message: 'entries are missing in the audit trail' },
};
