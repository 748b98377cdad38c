/**
 * Beside resumable uploads: `@tus/server` with its FileStore, on `node:http`, with its packages where the benchmark fetched them.
 *
 * Usage: node bench/floor/tus.ts FOLDER MODULES
 */
import { mkdirSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { announce } from './announce.ts';

type Tus = {
  readonly Server: new (settings: object) => { readonly handle: RequestListener };
  readonly FileStore: new (settings: { readonly directory: string }) => object;
};

const [directory = '', modules = ''] = process.argv.slice(2);
mkdirSync(directory, { recursive: true });
const load = createRequire(join(modules, 'package.json'));
const { Server } = load('@tus/server') as Tus;
const { FileStore } = load('@tus/file-store') as Tus;
const tus = new Server({ path: '/files', datastore: new FileStore({ directory }) });
announce(createServer((asked, answer) => tus.handle(asked, answer)));
