/**
 * The imports that each folder of src/ is allowed. `scripts/checks/imports.ts` holds the code to it, and fails on a row that no
 * longer says anything. The arrows are those of ARCHITECTURE.md: change both together and say why in docs/decisions/.
 */
import type { FolderRow } from './folder-row.ts';
import { observed, stored, values } from './import-layers.ts';
import { programRows } from './import-table-program.ts';

export const importTable: readonly FolderRow[] = [
  // Values: no I/O, no clock, no Node.
  { folder: 'src/http/syntax', may: [], node: [], packages: ['structured-headers'] },
  { folder: 'src/http', may: ['src/http/syntax'], node: [], packages: [] },
  { folder: 'src/model/search', may: [], node: [], packages: ['@orama/stemmers'] },
  { folder: 'src/model', may: ['src/http/syntax', 'src/model/search'], node: [], packages: ['typebox'] },

  // The client for programs and pages: types of the program at most, since it runs in browsers.
  { folder: 'src/client', may: ['src/http'], node: [], packages: [] },

  // The suite of conduct: a package of its own, which knows nothing of the server that it judges.
  {
    folder: 'conduct',
    may: [],
    node: [
      ...[
        'node:crypto',
        'node:http',
        'node:fs/promises',
        'node:http2',
        'node:net',
        'node:process',
        'node:readline/promises',
      ],
      ...['node:tls', 'node:util', 'node:zlib'],
    ],
    packages: [],
  },

  // Memory: bounded caches, the list of what is bounded, and the budget of what is under way. Nothing of the program below it.
  { folder: 'src/memory', may: [], node: ['node:os', 'node:process', 'node:v8'], packages: [] },

  // What a sender of webhooks is, as data; signatures are pure and stand below.
  { folder: 'src/webhooks/sender-rule.ts', may: ['src/webhooks/signature'], node: [], packages: [] },
  {
    folder: 'src/webhooks/vendor-presets.ts',
    may: ['src/webhooks/signature', 'src/webhooks/sender-rule.ts'],
    node: [],
    packages: [],
  },
  {
    folder: 'src/webhooks/presets.ts',
    may: ['src/webhooks/signature', 'src/webhooks/sender-rule.ts', 'src/webhooks/vendor-presets.ts'],
    node: [],
    packages: [],
  },
  // Exact integers of JSON, for the messages of both receivers.
  { folder: 'src/webhooks/exact-json.ts', may: [], node: [], packages: [] },
  // What every room may lean on.
  {
    folder: 'src/config',
    may: [
      ...values,
      'src/webhooks/signature',
      'src/webhooks/presets.ts',
      'src/webhooks/sender-rule.ts',
      'src/webhooks/exact-json.ts',
    ],
    node: [
      'node:fs',
      'node:fs/promises',
      'node:module',
      'node:net',
      'node:path',
      'node:process',
      'node:url',
      'node:util',
    ],
    packages: ['acorn', 'croner', 'typebox'],
  },
  {
    folder: 'src/observe',
    may: [...values, 'src/config'],
    node: ['node:async_hooks', 'node:fs', 'node:os', 'node:perf_hooks', 'node:process'],
    packages: [
      ...['pino', 'prom-client'],
      // Optional peers.
      ...['@opentelemetry/api', '@opentelemetry/sdk-trace', '@opentelemetry/exporter-trace-otlp-http'],
      '@opentelemetry/resources',
    ],
  },
  {
    folder: 'src/store',
    may: observed,
    node: [
      ...['node:crypto', 'node:fs', 'node:os', 'node:path', 'node:process', 'node:timers/promises'],
      'node:worker_threads',
    ],
    packages: [],
  },

  // The file that a backup is, which both stores write and read: also the embedded store's own.
  {
    folder: 'src/store/backup-file',
    may: stored,
    node: [
      ...['node:crypto', 'node:events', 'node:fs', 'node:os', 'node:path', 'node:sqlite', 'node:url'],
      'node:worker_threads',
    ],
    packages: [],
  },

  // Adapters: compose.ts alone chooses between them.
  {
    folder: 'src/store/sqlite',
    may: [...stored, 'src/store/backup-file'],
    node: [
      'node:crypto',
      'node:events',
      'node:fs',
      'node:fs/promises',
      'node:path',
      'node:sqlite',
      'node:timers/promises',
      'node:url',
      'node:worker_threads',
    ],
    packages: [],
  },

  {
    folder: 'src/store/postgres',
    may: [...stored, 'src/store/backup-file'],
    node: ['node:crypto', 'node:fs', 'node:timers/promises', 'node:tls', 'node:worker_threads'],
    packages: ['pg'],
  },

  // Rooms: beside each other; the description alone reads what resources declare.
  // One request: what a resource and an action are, and what answers for them.
  {
    folder: 'src/kernel',
    may: [...stored],
    node: [
      'node:buffer',
      'node:crypto',
      'node:os',
      'node:stream',
      'node:stream/promises',
      'node:timers/promises',
      'node:util',
      'node:zlib',
    ],
    packages: ['typebox'],
  },
  {
    folder: 'src/resources',
    may: [...stored, 'src/kernel'],
    node: [
      'node:buffer',
      'node:crypto',
      'node:timers/promises',
      'node:util',
      'node:worker_threads',
      'node:zlib',
    ],
    packages: ['typebox'],
  },
  {
    folder: 'src/accounts',
    may: [...stored, 'src/kernel', 'src/mail', 'src/resources'],
    node: [
      ...['node:buffer', 'node:crypto', 'node:net', 'node:os', 'node:timers/promises', 'node:util'],
      'node:worker_threads',
    ],
    packages: ['@peculiar/asn1-x509', '@simplewebauthn/server', 'jose', 'oauth4webapi', 'otpauth', 'typebox'],
  },
  // Out of the house: the guard and the only outbound dialer.
  {
    folder: 'src/egress',
    may: [...observed],
    node: ['node:dns/promises', 'node:http', 'node:net', 'node:os', 'node:stream', 'node:tls', 'node:zlib'],
    packages: ['undici'],
  },
  // What a connection can become: a WebSocket, or a tunnel.
  {
    folder: 'src/realtime',
    may: [...stored, 'src/accounts', 'src/kernel', 'src/resources'],
    node: ['node:buffer', 'node:crypto', 'node:http', 'node:http2', 'node:stream', 'node:zlib'],
    packages: ['ws'],
  },
  {
    folder: 'src/tunnel',
    may: [...observed, 'src/accounts', 'src/egress', 'src/kernel'],
    node: ['node:buffer', 'node:dgram', 'node:http', 'node:net', 'node:stream', 'node:url'],
    packages: [],
  },
  // Signatures, usable without the server: on any runtime with Web Crypto.
  { folder: 'src/webhooks/signature', may: [], node: [], packages: [] },
  // Receiving, usable without the server: what is in a message once it is verified, and one call that does it all.
  {
    folder: 'src/webhooks/receive',
    may: [
      'src/webhooks/signature',
      'src/webhooks/presets.ts',
      'src/webhooks/sender-rule.ts',
      'src/webhooks/exact-json.ts',
    ],
    node: [],
    packages: [],
  },
  {
    folder: 'src/webhooks/index.ts',
    may: [
      'src/webhooks/signature',
      'src/webhooks/presets.ts',
      'src/webhooks/sender-rule.ts',
      'src/webhooks/exact-json.ts',
      'src/webhooks/receive',
    ],
    node: [],
    packages: [],
  },
  // What sending and receiving share besides: secrets, and header fields that are the program's alone.
  { folder: 'src/webhooks/secrets.ts', may: ['src/model'], node: [], packages: [] },
  {
    folder: 'src/webhooks/sent-headers.ts',
    may: [...values, 'src/config', 'src/webhooks/signature'],
    node: ['node:crypto'],
    packages: [],
  },
  // The engine of due work, which sending and receiving are the policies of.
  { folder: 'src/work', may: [...stored], node: [], packages: [] },
  // What users write: the transaction and the threads that their functions run in, and the hooks of their collections.
  {
    folder: 'src/logic',
    may: [...stored, 'src/kernel', 'src/resources', 'src/webhooks/exact-json.ts'],
    node: [
      'node:async_hooks',
      'node:fs',
      'node:os',
      'node:util',
      'node:v8',
      'node:vm',
      'node:worker_threads',
      'node:zlib',
    ],
    packages: ['typebox'],
  },
  {
    folder: 'src/webhooks/routes',
    may: [...stored, 'src/kernel', 'src/resources', 'src/work'],
    node: ['node:crypto'],
    packages: [],
  },
  {
    folder: 'src/webhooks/receiving',
    may: [
      ...stored,
      'src/kernel',
      'src/resources',
      'src/accounts',
      'src/package-version.ts',
      'src/egress',
      'src/webhooks/signature',
      'src/webhooks/presets.ts',
      'src/webhooks/sender-rule.ts',
      'src/webhooks/receive',
      'src/logic',
      'src/work',
      'src/webhooks/routes',
      'src/webhooks/sending',
      'src/webhooks/secrets.ts',
      'src/webhooks/sent-headers.ts',
    ],
    node: [
      'node:async_hooks',
      'node:crypto',
      'node:fs',
      'node:os',
      'node:timers/promises',
      'node:worker_threads',
      'node:zlib',
    ],
    packages: ['typebox'],
  },
  // Events to subscribers: messages of the inbox, in the unit of the event.
  {
    folder: 'src/subscribers',
    may: [
      ...stored,
      'src/kernel',
      'src/resources',
      'src/work',
      'src/webhooks/receiving',
      'src/webhooks/sending',
      'src/webhooks/routes',
    ],
    node: ['node:crypto'],
    packages: ['typebox'],
  },
  // Jobs: messages of the inbox at scheduled times.
  {
    folder: 'src/jobs',
    may: [
      ...stored,
      'src/kernel',
      'src/resources',
      'src/work',
      'src/webhooks/receiving',
      'src/webhooks/routes',
    ],
    node: [],
    packages: ['typebox'],
  },
  {
    folder: 'src/webhooks/sending',
    may: [
      ...stored,
      'src/kernel',
      'src/resources',
      'src/accounts',
      'src/package-version.ts',
      'src/egress',
      'src/webhooks/signature',
      'src/logic',
      'src/work',
      'src/hold',
      'src/webhooks/routes',
      'src/webhooks/secrets.ts',
      'src/webhooks/sent-headers.ts',
    ],
    node: ['node:crypto', 'node:fs', 'node:os', 'node:process'],
    packages: ['typebox'],
  },
  // What a restored copy does not send before it is released.
  {
    folder: 'src/hold',
    may: [...stored, 'src/kernel', 'src/store/backup-file', 'src/work'],
    node: [],
    packages: ['typebox'],
  },
  // Files of documents: where their octets are kept.
  {
    folder: 'src/files',
    may: [...stored, 'src/egress', 'src/hold', 'src/kernel', 'src/resources', 'src/store/backup-file'],
    node: [
      ...['node:child_process', 'node:crypto', 'node:fs', 'node:fs/promises', 'node:os', 'node:path'],
      ...['node:process', 'node:sqlite', 'node:stream', 'node:stream/promises', 'node:timers/promises'],
      ...['node:url', 'node:util'],
    ],
    // `sharp` is an optional peer.
    packages: ['@rgrove/parse-xml', 'aws4fetch', 'file-type', 'sharp', 'typebox'],
  },
  // Backups that administrators ask for: files in a folder, written by the store.
  {
    folder: 'src/backups',
    may: [...stored, 'src/files', 'src/kernel', 'src/resources'],
    node: ['node:fs/promises', 'node:path'],
    packages: ['typebox'],
  },
  // Migrations of documents: a policy over the store, which uses how resources become rows.
  {
    folder: 'src/migrations',
    may: [...stored, 'src/kernel', 'src/resources'],
    node: ['node:crypto', 'node:path', 'node:timers/promises', 'node:url', 'node:worker_threads'],
    packages: [],
  },
  // Mail of functions and of accounts, kept with the unit that causes it: a policy of the engine of due work.
  {
    folder: 'src/mail',
    may: [...stored, 'src/kernel', 'src/resources', 'src/work'],
    node: ['node:buffer'],
    packages: ['nodemailer', 'typebox'],
  },
  // A builder: it reads what resources declare and imports none of the folders that declare them but the one that says how.
  {
    folder: 'src/openapi',
    may: [...observed, 'src/kernel', 'src/resources'],
    node: ['node:crypto', 'node:fs', 'node:fs/promises', 'node:path', 'node:timers/promises', 'node:url'],
    packages: ['github-slugger', 'marked'],
  },
  ...programRows,
];
