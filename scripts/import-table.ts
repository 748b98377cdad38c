/**
 * What each folder of src/ may import. `scripts/checks/imports.ts` holds the code to it, and fails on a row that no
 * longer says anything. The arrows are those of ARCHITECTURE.md: change both together and say why in docs/decisions/.
 */
import type { FolderRow } from './folder-row.ts';
import { observed, stored, values } from './import-layers.ts';
import { programRows } from './import-table-program.ts';

export const importTable: readonly FolderRow[] = [
  // Values: no I/O, no clock, no Node.
  { folder: 'src/http/syntax', may: [], node: [], packages: ['structured-headers'] },
  { folder: 'src/http', may: ['src/http/syntax'], node: [], packages: [] },
  { folder: 'src/model', may: ['src/http/syntax'], node: [], packages: ['typebox'] },

  // Memory: bounded caches, the list of what is bounded, and the budget of what is under way. Nothing of the program below it.
  { folder: 'src/memory', may: [], node: ['node:os', 'node:process', 'node:v8'], packages: [] },

  // What a sender of webhooks is, as data; signatures are pure and stand below.
  { folder: 'src/webhooks/presets', may: ['src/webhooks/signature'], node: [], packages: [] },
  // What every room may lean on.
  {
    folder: 'src/config',
    may: [...values, 'src/webhooks/signature', 'src/webhooks/presets'],
    node: ['node:fs', 'node:fs/promises', 'node:net', 'node:path', 'node:url', 'node:util'],
    packages: ['typebox'],
  },
  {
    folder: 'src/observe',
    may: [...values, 'src/config'],
    node: ['node:async_hooks', 'node:os', 'node:perf_hooks', 'node:process'],
    packages: ['pino', 'prom-client'],
  },
  {
    folder: 'src/store',
    may: observed,
    node: ['node:crypto', 'node:fs', 'node:os', 'node:path'],
    packages: [],
  },

  // The file that a backup is, which both stores write and read: also the embedded store's own.
  {
    folder: 'src/store/backup-file',
    may: stored,
    node: ['node:crypto', 'node:fs', 'node:path', 'node:sqlite', 'node:url', 'node:worker_threads'],
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
      'node:os',
      'node:path',
      'node:sqlite',
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

  // Rooms: beside each other, never into each other.
  {
    folder: 'src/auth',
    may: [...stored],
    node: ['node:buffer', 'node:crypto', 'node:util', 'node:worker_threads'],
    packages: ['jose', 'oauth4webapi'],
  },
  {
    folder: 'src/resources',
    may: [...stored, 'src/typebox-bundle.ts'],
    node: [
      'node:buffer',
      'node:crypto',
      'node:os',
      'node:stream',
      'node:stream/promises',
      'node:timers/promises',
      'node:util',
      'node:worker_threads',
      'node:zlib',
    ],
    packages: ['@fastify/busboy', 'pgsql-ast-parser', 'typebox'],
  },
  // Accounts as resources: between the room that knows credentials and the one that knows conduct.
  {
    folder: 'src/resources/accounts',
    may: [...stored, 'src/auth', 'src/resources'],
    node: ['node:crypto'],
    packages: ['typebox'],
  },
  // Out of the house: the guard and the only outbound dialer.
  {
    folder: 'src/egress',
    may: [...observed],
    node: ['node:dns/promises', 'node:http', 'node:net', 'node:os', 'node:stream', 'node:tls', 'node:zlib'],
    packages: ['undici'],
  },
  // What a connection can become.
  {
    folder: 'src/connections',
    may: [...observed, 'src/auth', 'src/egress'],
    node: [
      'node:buffer',
      'node:crypto',
      'node:dgram',
      'node:http',
      'node:http2',
      'node:net',
      'node:stream',
      'node:url',
      'node:zlib',
    ],
    packages: ['ws'],
  },
  // Signatures, usable without the server: on any runtime with Web Crypto.
  { folder: 'src/webhooks/signature', may: [], node: [], packages: [] },
  // Receiving, usable without the server: what is in a message once it is verified, and one call that does it all.
  {
    folder: 'src/webhooks/receive',
    may: ['src/webhooks/signature', 'src/webhooks/presets'],
    node: [],
    packages: [],
  },
  {
    folder: 'src/webhooks/index.ts',
    may: ['src/webhooks/signature', 'src/webhooks/presets', 'src/webhooks/receive'],
    node: [],
    packages: [],
  },
  {
    folder: 'src/webhooks/inbound',
    may: [
      ...stored,
      'src/egress',
      'src/webhooks/signature',
      'src/webhooks/presets',
      'src/webhooks/receive',
      'src/webhooks/outbound',
      'src/typebox-bundle.ts',
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
  {
    folder: 'src/webhooks/outbound',
    may: [...stored, 'src/egress', 'src/webhooks/signature'],
    node: ['node:crypto', 'node:os', 'node:process'],
    packages: ['typebox'],
  },
  {
    folder: 'src/resources/webhooks',
    may: [
      ...stored,
      'src/egress',
      'src/resources',
      'src/webhooks/signature',
      'src/webhooks/presets',
      'src/webhooks/receive',
      'src/webhooks/outbound',
      'src/webhooks/inbound',
    ],
    node: ['node:crypto'],
    packages: ['typebox'],
  },
  { folder: 'src/mail', may: [...stored, 'src/auth'], node: [], packages: ['nodemailer'] },
  {
    folder: 'src/openapi',
    may: observed,
    node: ['node:crypto', 'node:fs', 'node:fs/promises', 'node:url'],
    packages: [],
  },
  ...programRows,
];
