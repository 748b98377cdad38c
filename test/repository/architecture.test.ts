/**
 * ARCHITECTURE.md describes the tree that is there, and the invariants that it states as absences hold where no check of
 * scripts/checks does. The source is searched without its comments.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { parseSource } from '../../scripts/parse-source.ts';

const page = readFileSync('ARCHITECTURE.md', 'utf8');

test('names every folder of src/ down to the second level', () => {
  const folders = globSync(['src/*/', 'src/*/*/']).map((folder) => folder.replace(/\/$/, ''));
  assert.ok(folders.includes('src/http/syntax'));
  assert.deepEqual(
    folders.filter((folder) => !page.includes(`\`${folder}\``)),
    [],
  );
});

test('names no path that is not there', () => {
  const named = [...page.matchAll(/`((?:src|test|scripts|docs|examples)\/[\w./-]+)`/g)].map(
    ([, path = '']) => path,
  );
  assert.ok(named.length > 20);
  assert.deepEqual(
    named.filter((path) => !existsSync(path)),
    [],
  );
});

test('http and model read no clock, draw no random number and set no timer', () => {
  const impure =
    /\b(?:Date\.now|new Date\(\)|performance\.|Math\.random|crypto\.|setTimeout|setInterval|setImmediate)/;
  assert.deepEqual(find(['src/http/**/*.ts', 'src/model/**/*.ts'], impure), []);
});

test('only sinks and commands print', () => {
  const printing = /\bconsole\.|\bprocess\.(?:stdout|stderr)\b|\bstd(?:out|err)\.write\b/;
  assert.deepEqual(
    find(['src/**/*.ts'], printing).filter((place) => !/^src\/(?:observe\/|cli\/|main\.ts)/.test(place)),
    [],
  );
  assert.notEqual(find(['src/cli/*.ts'], printing).length, 0);
});

test('a command reaches the streams of the process by its terminal alone', () => {
  const direct = /\bconsole\.|\bprocess\.std(?:in|out|err)\b/;
  assert.deepEqual(find(['src/cli/**/*.ts'], direct), []);
});

test('only main.ts looks at the environment', () => {
  assert.deepEqual(
    find(['src/**/*.ts'], /\bprocess\.env\b|\bimport\b.*\benv\b.*node:process/).filter(
      (place) => !place.startsWith('src/main.ts:'),
    ),
    [],
  );
});

test('nothing at module level changes', () => {
  // An empty collection at module level is there to be filled, unless its type says that it stays empty.
  const changing =
    /^(?:export )?(?:let|var) |^(?:export )?const \w+(?:: (?!readonly|Readonly)[^=]*)? = (?:new \w*(?:Map|Set)(?:<.*>)?\(\)|\[\]|\{\});/;
  assert.deepEqual(find(['src/**/*.ts'], changing), []);
});

test('no handler names a status: they come from the answers and the error registry', () => {
  const handlers = ['kernel', 'resources', 'accounts', 'realtime', 'webhooks/{routes,sending,receiving}'];
  const choosing = /\bstatus(?:Code)?: ?[1-5]\d\d\b|\b\w*[rR]esponse\([1-5]\d\d\b|\bstatus = [1-5]\d\d\b/;
  // An example in the OpenAPI document shows what a receiver answered to a delivery.
  const example = 'src/webhooks/sending/delivery-routes.ts:';
  const files = handlers.map((folder) => `src/${folder}/**/*.ts`);
  const chosen = find(files, choosing).filter((place) => !place.startsWith(example));
  assert.deepEqual(chosen, []);
  // The two tables that do name them, so that the pattern is known to find what it looks for.
  assert.notEqual(find(['src/http/conduct/answers.ts'], choosing).length, 0);
});

test('a plain read and a list parse no stored document but those at the edges of a page, for cursors', () => {
  const reading = [
    'src/resources/collection/{member,list-page,listing,list-answer,row}.ts',
    'src/kernel/answer/*.ts',
    'src/resources/document/representation.ts',
    'src/store/*.ts',
    'src/store/sqlite/**/*.ts',
    'src/store/postgres/{changes,compile,connection,read}/*.ts',
  ];
  const edges = 'src/store/page-of-rows.ts:';
  // Making an index of words anew is neither a read nor a list: the writer does it.
  const indexing = 'src/store/sqlite/writer/filling.ts:';
  // Nor are the few documents that the message of a refused start shows.
  const refusing = 'src/store/declared-indexes.ts:';
  // Nor are the values that make a row unique, which a write is judged by.
  const judging = 'src/store/unique-values.ts:';
  const places = find(reading, /\bJSON\.parse\b|\bparseJson\b/);
  assert.deepEqual(
    places.filter((place) => ![edges, indexing, refusing, judging].some((start) => place.startsWith(start))),
    [],
  );
  // The one exception still needs to be one, so that the pattern is known to find what it looks for.
  assert.notEqual(places.length, 0);
});

test('threads that read, write, copy, hash or hand on load neither the schema library nor the stemmers', () => {
  for (const thread of [
    'src/logic/threads/handler-thread-program.ts',
    'src/store/sqlite/writer/writer-thread.ts',
    'src/store/sqlite/reader/reader-thread.ts',
    'src/store/sqlite/copy-thread.ts',
    'src/store/postgres/postgres-backup-thread.ts',
    'src/accounts/passwords/argon2-thread.ts',
  ]) {
    const loaded = [...packagesOf(thread)].filter((name) => /^(?:typebox|@orama)\b/.test(name));
    assert.deepEqual(loaded, [], thread);
  }
  assert.ok(packagesOf('src/resources/content-threads/content-thread.ts').has('typebox/compile'));
});

/** Packages that a file loads, itself or through others. */
function packagesOf(entry: string): ReadonlySet<string> {
  const files = new Set([entry]);
  const packages = new Set<string>();
  for (const file of files) {
    const loading = readFileSync(file, 'utf8').replace(/^import type [^;]*;$/gm, '');
    for (const { specifier, kind } of parseSource(file, loading).imports) {
      if (kind !== 'static') continue;
      if (specifier.startsWith('.')) files.add(posix.join(posix.dirname(file), specifier));
      else if (!specifier.startsWith('node:')) packages.add(specifier);
    }
  }
  return packages;
}

test('a thread that imports a configuration loads nothing of the program but what declares it', async () => {
  const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(loadedBy('comity'))}`));
  const [loaded] = (await once(worker, 'message')) as [readonly string[]];
  const folders = new Set(loaded.flatMap((url) => /\/src\/(?:([\w-]+)\/|[\w.-]+$)/.exec(url)?.[1] ?? []));
  assert.deepEqual([...folders].sort(), ['config', 'model']);
});

/** A module that sends the URLs of all that the import of a package's entry loads. */
function loadedBy(entry: string): string {
  return `import { registerHooks } from 'node:module';
    import { parentPort } from 'node:worker_threads';
    const loaded = [];
    registerHooks({ load: (url, context, next) => { loaded.push(url); return next(url, context); } });
    await import(${JSON.stringify(import.meta.resolve(entry))});
    parentPort.postMessage(loaded);`;
}

/** `file:line: text` wherever the pattern is found outside comments. */
function find(patterns: readonly string[], wanted: RegExp): readonly string[] {
  const files = globSync(patterns);
  assert.notEqual(files.length, 0, `no file is named ${patterns.join(', ')}`);
  return files.sort().flatMap((file) =>
    withoutComments(readFileSync(file, 'utf8'))
      .split('\n')
      .flatMap((line, index) => (wanted.test(line) ? [`${file}:${index + 1}: ${line.trim()}`] : [])),
  );
}

/** Block comments keep their line breaks; a line comment goes from `//` at the start of a line or after a space. */
function withoutComments(text: string): string {
  return text
    .replace(/\/\*[\s\S]*?\*\//g, (comment) => comment.replace(/[^\n]/g, ''))
    .replace(/(^|\s)\/\/ .*$/gm, '$1');
}
