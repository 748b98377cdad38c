/**
 * `comity seed`: fills the store of a project, without a server. The file is a module whose default export is a function of `resources`, or
 * NDJSON with a document a line: `{"collection":"tasks","fields":{...}}`. A line with an `id` replaces the document of that id, so that the
 * same file can be run again; it needs a collection where PUT creates.
 */
import { createReadStream, existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { composeMounted } from '../compose.ts';
import { ResourceRefused } from '../config/handler.ts';
import { isRecord, kindOf } from '../config/inspection.ts';
import type { WrittenSettings } from '../config/load-settings.ts';
import type { Resources } from '../model/logic/collection-calls.ts';
import { authenticated, operatorId, scopes } from '../model/principal.ts';
import { createLog } from '../observe/log.ts';
import { createMetrics } from '../observe/metrics.ts';
import { ignoreError, ownEmitter } from '../observe/own-emitter.ts';
import { CommandFailure, exitCodes } from './failure.ts';
import { readConfiguration } from './read-configuration.ts';
import { startFailure } from './start-failure.ts';
import type { Terminal } from './terminal.ts';

const linesFile = /\.(?:nd)?jsonl?$/;

export async function seed(terminal: Terminal, file: string, options: WrittenSettings): Promise<number> {
  if (!existsSync(file)) throw new CommandFailure(`there is no file ${file}`, { exitCode: exitCodes.usage });
  const reading = await readConfiguration(terminal.environment, options);
  const metrics = createMetrics();
  const log = createLog({
    level: 'warn',
    ...(terminal.log === undefined ? {} : { destination: terminal.log }),
  });
  const program = await composeMounted({ ...reading, observe: log, metrics }).catch((error: unknown) => {
    throw startFailure(error, reading.settings);
  });
  try {
    const resources = program.callsAs(authenticated({ id: operatorId, scopes }));
    const count = linesFile.test(file) ? await seedLines(resources, file) : await seedModule(resources, file);
    terminal.out(count === undefined ? `Ran ${file}.` : `Wrote ${count} documents of ${file}.`);
  } finally {
    await program.stop('seeded');
  }
  return exitCodes.done;
}

async function seedModule(resources: Resources, file: string): Promise<undefined> {
  const { default: run } = (await import(pathToFileURL(resolve(file)).href)) as { default?: unknown };
  if (typeof run !== 'function')
    throw new CommandFailure(`${file} must have a function as its default export, not ${kindOf(run)}`);
  await run({ resources });
}

/** @returns the number of documents; those before a mistake are written */
async function seedLines(resources: Resources, file: string): Promise<number> {
  const lines = ownEmitter(
    createInterface({ input: ownEmitter(createReadStream(file), ignoreError), crlfDelay: Infinity }),
    ignoreError,
  );
  let number = 0;
  let count = 0;
  for await (const line of lines) {
    number += 1;
    if (line.trim() === '') continue;
    try {
      await seedLine(resources, line);
    } catch (error) {
      if (!(error instanceof ResourceRefused || error instanceof SyntaxError || error instanceof TypeError))
        throw error;
      throw new CommandFailure(`${file}:${number}: ${error.message}`, { cause: error });
    }
    count += 1;
  }
  return count;
}

async function seedLine(resources: Resources, line: string): Promise<void> {
  const written: unknown = JSON.parse(line);
  if (!isRecord(written)) throw new TypeError(`a line must be an object, not ${kindOf(written)}`);
  const { collection, id, fields, owner } = written;
  if (typeof collection !== 'string') throw new TypeError('collection must be the name of a collection');
  if (!isRecord(fields)) throw new TypeError(`fields must be an object, not ${kindOf(fields)}`);
  if (id !== undefined && typeof id !== 'string') throw new TypeError('id must be a string');
  if (owner !== undefined && typeof owner !== 'string') throw new TypeError('owner must be a string');
  const calls = (resources as Readonly<Record<string, Resources[string] | undefined>>)[collection];
  if (calls === undefined) throw new TypeError(`no collection is named ${collection}`);
  if (id !== undefined) await calls.replace(id, fields);
  else await calls.create(fields, owner === undefined ? {} : { owner });
}
