/**
 * `comity seed`: fills the store of a project, without a server. The file is a module whose default export is a function of `resources`, or
 * NDJSON with a document a line: `{"collection":"tasks","fields":{...}}`. A line with an `id` replaces the document of that id, so that the
 * same file can be run again; it needs a collection where PUT creates. Nothing is written while a line is no such object.
 */
import { createReadStream, existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { isRecord, kindOf, suggestion } from '../config/inspection.ts';
import { placeFailure } from '../config/load-configuration.ts';
import type { WrittenSettings } from '../config/load-settings.ts';
import { ResourceRefused } from '../config/senders.ts';
import type { Collection } from '../model/collection.ts';
import type { Resources } from '../model/logic/collection-calls.ts';
import { authenticated, operatorId, scopes } from '../model/principal.ts';
import { createLog } from '../observe/log.ts';
import { createMetrics } from '../observe/metrics.ts';
import { ignoreError, ownEmitter } from '../observe/own-emitter.ts';
import { composeMounted } from '../running.ts';
import { CommandFailure, exitCodes, usageFailure } from './failure.ts';
import { readConfiguration } from './read-configuration.ts';
import { startFailure } from './start-failure.ts';
import type { Terminal } from './terminal.ts';

const linesFile = /\.(?:nd)?jsonl?$/;
const moduleFile = /\.[cm]?[jt]s$/;
/** Mistakes of one file that are printed. */
const mistakesMax = 20;

export async function seed(terminal: Terminal, file: string, options: WrittenSettings): Promise<number> {
  if (!existsSync(file)) throw usageFailure(`there is no file ${file}`);
  if (!linesFile.test(file) && !moduleFile.test(file)) {
    throw usageFailure(`${file} must be a module (.ts, .js, .mjs), or lines of JSON (.ndjson, .jsonl)`);
  }
  const reading = await readConfiguration(terminal.environment, options);
  const { collections } = reading.configuration;
  if (linesFile.test(file)) await inspectLines(terminal, collections, file);
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
    if (moduleFile.test(file)) {
      await seedModule(resources, file);
      terminal.out(`Ran ${file}.`);
    } else {
      const count = await seedLines(terminal, resources, collections, file);
      terminal.out(`Wrote ${count} documents of ${file}.`);
    }
  } finally {
    await program.stop('seeded');
  }
  return exitCodes.done;
}

async function seedModule(resources: Resources, file: string): Promise<void> {
  const placed = async (error: unknown): Promise<never> => {
    throw new CommandFailure(await placeFailure(file, error), { cause: error });
  };
  const { default: run } = (await import(pathToFileURL(resolve(file)).href).catch(placed)) as {
    default?: unknown;
  };
  if (typeof run !== 'function')
    throw new CommandFailure(`${file} must have a function as its default export, not ${kindOf(run)}`);
  try {
    await run({ resources });
  } catch (error) {
    await placed(error);
  }
}

type Collections = ReadonlyMap<string, Collection>;
type Line = { readonly number: number; readonly text: string };

async function* linesOf(file: string): AsyncGenerator<Line> {
  const lines = ownEmitter(
    createInterface({ input: ownEmitter(createReadStream(file), ignoreError), crlfDelay: Infinity }),
    ignoreError,
  );
  let number = 0;
  for await (const text of lines) {
    number += 1;
    if (text.trim() !== '') yield { number, text };
  }
}

/** Before the first document is written. @throws CommandFailure after it has printed the mistakes of all lines */
async function inspectLines(terminal: Terminal, collections: Collections, file: string): Promise<void> {
  const mistakes = new Mistakes(terminal, file);
  for await (const { number, text } of linesOf(file)) {
    try {
      readLine(collections, text);
    } catch (error) {
      mistakes.tell(number, error);
    }
  }
  if (mistakes.count > 0) throw new CommandFailure(`${mistakes.text} of ${file}; nothing was written`);
}

/** @returns the number of documents @throws CommandFailure after it has printed which lines were refused; the others are written */
async function seedLines(
  terminal: Terminal,
  resources: Resources,
  collections: Collections,
  file: string,
): Promise<number> {
  const mistakes = new Mistakes(terminal, file);
  let count = 0;
  for await (const { number, text } of linesOf(file)) {
    try {
      await seedLine(resources, collections, text);
      count += 1;
    } catch (error) {
      mistakes.tell(number, error);
    }
  }
  if (mistakes.count === 0) return count;
  throw new CommandFailure(`${mistakes.text} of ${file}; ${count} documents were written`);
}

class Mistakes {
  count = 0;
  readonly #terminal: Terminal;
  readonly #file: string;

  constructor(terminal: Terminal, file: string) {
    this.#terminal = terminal;
    this.#file = file;
  }

  /** @throws what is no mistake of a line */
  tell(line: number, error: unknown): void {
    const isMistake =
      error instanceof ResourceRefused || error instanceof SyntaxError || error instanceof TypeError;
    const isHook = error instanceof Error && error.name === 'FunctionFailed';
    if (!isMistake && !isHook) throw error;
    this.count += 1;
    if (this.count <= mistakesMax) this.#terminal.err(`comity: ${this.#file}:${line}: ${error.message}`);
  }

  get text(): string {
    const untold = this.count > mistakesMax ? `, ${this.count - mistakesMax} of them not shown,` : '';
    return `${this.count} ${this.count === 1 ? 'mistake' : 'mistakes'}${untold} in lines`;
  }
}

type Document = {
  readonly collection: string;
  readonly id: string | undefined;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly owner: string | undefined;
};

/** @throws SyntaxError, TypeError */
function readLine(collections: Collections, line: string): Document {
  const written: unknown = JSON.parse(line);
  if (!isRecord(written)) throw new TypeError(`a line must be an object, not ${kindOf(written)}`);
  const { collection, id, fields, owner } = written;
  if (typeof collection !== 'string') throw new TypeError('collection must be the name of a collection');
  if (!collections.has(collection)) {
    const meant = suggestion(collection, collections.keys());
    throw new TypeError(`no collection is named ${JSON.stringify(collection)}${meant}`);
  }
  if (!isRecord(fields)) throw new TypeError(`fields must be an object, not ${kindOf(fields)}`);
  if (id !== undefined && typeof id !== 'string') throw new TypeError('id must be a string');
  if (owner !== undefined && typeof owner !== 'string') throw new TypeError('owner must be a string');
  return { collection, id, fields, owner };
}

async function seedLine(resources: Resources, collections: Collections, line: string): Promise<void> {
  const { collection, id, fields, owner } = readLine(collections, line);
  const calls = resources[collection];
  if (calls === undefined) throw new TypeError(`no collection is named ${JSON.stringify(collection)}`);
  if (id === undefined) {
    await calls.create(fields, owner === undefined ? {} : { owner });
    return;
  }
  try {
    await calls.replace(id, fields);
  } catch (error) {
    const isMissing = error instanceof ResourceRefused && error.code === 'not_found';
    if (!isMissing || collections.get(collection)?.putCreates === true) throw error;
    throw new TypeError(
      `${collection} has no document ${JSON.stringify(id)}, and a line creates one with an id of its own only where PUT does: set putCreates: true on the collection, or leave the id out`,
      { cause: error },
    );
  }
}
