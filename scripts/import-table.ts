/**
 * What each folder of src/ may import. `scripts/checks/imports.ts` holds the code to it, and fails on a row that no
 * longer says anything. The arrows are those of ARCHITECTURE.md: change both together and say why in docs/decisions/.
 */

export type FolderRow = {
  /** Path of a folder, or of one file, relative to the root. The longest row that covers a file is its row. */
  readonly folder: string;
  /** Other rows that its files may import from. A row's own files may always import each other. */
  readonly may: readonly string[];
  /** Modules of Node that its files may import; `any` where the boundary does not matter. */
  readonly node: readonly string[] | 'any';
  /** Packages of npm that its files may import, and do. */
  readonly packages: readonly string[];
};

const http = ['src/http', 'src/http/syntax'];
const values = [...http, 'src/model'];
const observed = [...values, 'src/config', 'src/observe'];
const stored = [...observed, 'src/store'];
const rooms = ['src/auth', 'src/resources', 'src/resources/accounts', 'src/openapi'];

export const importTable: readonly FolderRow[] = [
  // Values: no I/O, no clock, no Node.
  { folder: 'src/http/syntax', may: [], node: [], packages: ['structured-headers'] },
  { folder: 'src/http', may: ['src/http/syntax'], node: [], packages: [] },
  { folder: 'src/model', may: ['src/http/syntax'], node: [], packages: ['typebox'] },

  // What every room may lean on.
  // What a sender of webhooks is, as data; signatures are pure and stand below.
  { folder: 'src/webhooks/presets', may: ['src/webhooks/signature'], node: [], packages: [] },
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
  { folder: 'src/store', may: [...values, 'src/observe'], node: ['node:fs', 'node:os'], packages: [] },

  // The file that a backup is, which both stores write and read: also the embedded store's own.
  {
    folder: 'src/store/backup-file',
    may: stored,
    node: ['node:fs', 'node:path', 'node:sqlite', 'node:url', 'node:worker_threads'],
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
    may: [...stored],
    node: [
      'node:buffer',
      'node:crypto',
      'node:stream',
      'node:stream/promises',
      'node:timers/promises',
      'node:util',
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
    node: ['node:crypto', 'node:url', 'node:worker_threads'],
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

  // The program.
  { folder: 'src/server', may: [...stored, ...rooms], node: 'any', packages: [] },
  {
    folder: 'src/store-tables.ts',
    may: [
      ...stored,
      'src/auth',
      'src/resources',
      'src/resources/accounts',
      'src/webhooks/inbound',
      'src/webhooks/outbound',
    ],
    node: [],
    packages: [],
  },
  { folder: 'src/package-version.ts', may: [], node: ['node:fs'], packages: [] },
  {
    folder: 'src/open-store.ts',
    may: [
      ...stored,
      'src/store/sqlite',
      'src/store/postgres',
      'src/store-tables.ts',
      'src/package-version.ts',
    ],
    node: ['node:crypto'],
    packages: [],
  },
  {
    folder: 'src/compose-accounts.ts',
    may: [...stored, 'src/auth', 'src/mail', 'src/resources', 'src/resources/accounts'],
    node: ['node:os'],
    packages: [],
  },
  {
    folder: 'src/compose-document.ts',
    may: [
      ...observed,
      'src/openapi',
      'src/resources',
      'src/resources/accounts',
      'src/resources/webhooks',
      'src/webhooks/outbound',
    ],
    node: [],
    packages: [],
  },
  {
    folder: 'src/compose-webhooks.ts',
    may: [
      ...stored,
      'src/auth',
      'src/egress',
      'src/package-version.ts',
      'src/resources',
      'src/resources/webhooks',
      'src/webhooks/outbound',
    ],
    node: ['node:fs', 'node:os'],
    packages: [],
  },
  {
    folder: 'src/compose-received.ts',
    may: [
      ...stored,
      'src/egress',
      'src/package-version.ts',
      'src/resources',
      'src/resources/webhooks',
      'src/webhooks/inbound',
      'src/webhooks/outbound',
    ],
    node: [],
    packages: [],
  },
  {
    folder: 'src/compose-handler.ts',
    may: [
      ...stored,
      'src/auth',
      'src/openapi',
      'src/resources',
      'src/resources/accounts',
      'src/compose-accounts.ts',
      'src/compose-document.ts',
      'src/compose-received.ts',
      'src/compose-webhooks.ts',
    ],
    node: [],
    packages: [],
  },
  {
    folder: 'src/compose.ts',
    may: [
      ...stored,
      'src/open-store.ts',
      ...rooms,
      'src/egress',
      'src/webhooks/inbound',
      'src/webhooks/outbound',
      'src/server',
      'src/compose-accounts.ts',
      'src/compose-handler.ts',
      'src/compose-received.ts',
      'src/compose-webhooks.ts',
    ],
    node: 'any',
    packages: [],
  },
  {
    folder: 'src/create-comity.ts',
    may: [...observed, 'src/compose.ts'],
    node: ['node:http'],
    packages: [],
  },
  {
    folder: 'src/index.ts',
    may: [...values, 'src/config', 'src/create-comity.ts'],
    node: [],
    packages: ['typebox'],
  },
  {
    folder: 'src/cli',
    may: [
      ...stored,
      'src/store/backup-file',
      'src/store/sqlite',
      'src/store/postgres',
      'src/store-tables.ts',
      'src/package-version.ts',
      'src/webhooks/signature',
      'src/webhooks/inbound',
      'src/webhooks/outbound',
      ...rooms,
      'src/server',
      'src/compose.ts',
    ],
    node: 'any',
    packages: ['commander'],
  },
  // Threads that import a configuration use it as well.
  { folder: 'src/typebox-bundle.ts', may: [], node: ['node:fs', 'node:module'], packages: [] },
  {
    folder: 'src/main.ts',
    may: ['src/cli', 'src/typebox-bundle.ts'],
    node: ['node:module', 'node:process'],
    packages: [],
  },

  {
    folder: 'examples/receive-express',
    may: ['src/webhooks/index.ts'],
    node: ['node:http'],
    packages: ['express'],
  },
  { folder: 'examples/receive-fastify', may: ['src/webhooks/index.ts'], node: [], packages: ['fastify'] },
  {
    folder: 'examples/receive-hono',
    may: ['src/webhooks/index.ts'],
    node: [],
    packages: ['@hono/node-server', 'hono'],
  },
  // A configuration, or a program, sees what a user of the package sees.
  { folder: 'examples', may: ['src/index.ts', 'src/webhooks/index.ts'], node: 'any', packages: [] },
];
