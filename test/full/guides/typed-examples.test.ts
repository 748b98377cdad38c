/**
 * Every TypeScript example of a page compiles in a project as `comity init` writes it, against the declarations that the package brings.
 * The `ts` blocks of a page that has an `export default` in one are one file; every other block is a file of its own, and so is what a
 * command writes to `NAME.ts` by a here-document, beside the files that commands of its page wrote before. `<!-- in: CODE -->` before a block
 * that is a part of something stands for the whole, with `...` where the block belongs (read-examples.ts).
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cpSync, globSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { starterFiles } from '../../../src/cli/init.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';
import { type CodeBlock, readCode } from './read-examples.ts';

const run = promisify(execFile);
const compiler = resolve('node_modules/typescript/bin/tsc');
const starter = starterFiles({ name: 'guide', comity: '*', bringsNode: false });
const folder = temporaryFolder();

/** Declares the collections of a whole program, so it compiles apart from the others. */
const declaresModule = /declare module 'comity'/;

type Project = { readonly page: string; readonly path: string; readonly isAlone: boolean };

const projects = globSync(['README.md', 'docs/guides/*.md', 'examples/*/README.md'])
  .sort()
  .flatMap((page) =>
    foldersOf(readCode(readFileSync(page, 'utf8'))).map((files, at): Project => {
      const path = join(folder, `${page.replaceAll('/', '-')}-${at}`);
      mkdirSync(path);
      for (const name of ['package.json', 'tsconfig.json', 'comity.config.ts']) {
        writeFileSync(join(path, name), files.get(name) ?? starter.get(name) ?? '');
      }
      for (const [name, text] of files) writeFileSync(join(path, name), text);
      return { page, path, isAlone: [...files.values()].some((text) => declaresModule.test(text)) };
    }),
  );

/** @returns what the compiler says of each folder that it has something to say of */
async function compile(project: string, ...more: readonly string[]): Promise<readonly string[]> {
  const args = [compiler, '--project', project, '--pretty', 'false', '--checkers', '1', ...more];
  try {
    await run(process.execPath, args);
    return [];
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string };
    return `${stdout}${stderr}`.split('\n').filter((line) => line !== '');
  }
}

describe('the TypeScript examples of', () => {
  let problems: readonly string[] = [];

  before(async () => {
    const modules = join(folder, 'node_modules');
    mkdirSync(join(modules, 'comity'), { recursive: true });
    cpSync('package.json', join(modules, 'comity/package.json'));
    assert.deepEqual(await compile('tsconfig.build.json', '--outDir', join(modules, 'comity/dist')), []);
    const { dependencies } = JSON.parse(readFileSync('package.json', 'utf8'));
    for (const name of ['@types', 'undici', 'undici-types', ...Object.keys(dependencies)]) {
      symlinkSync(resolve('node_modules', name), join(modules, name));
    }
    const together = join(folder, 'tsconfig.json');
    const include = projects.filter(({ isAlone }) => !isAlone).map(({ path }) => `${basename(path)}/*.ts`);
    const options = JSON.parse(starter.get('tsconfig.json') ?? '');
    writeFileSync(together, JSON.stringify({ ...options, include }));
    const alone = projects.filter(({ isAlone }) => isAlone).map(({ path }) => path);
    const found: string[] = [];
    for (const project of [together, ...alone]) found.push(...(await compile(project)));
    problems = found;
  });

  for (const page of new Set(projects.map((project) => project.page))) {
    test(`${page} compile in a new project`, () => {
      const named = page.replaceAll('/', '-');
      assert.deepEqual(
        problems.filter((line) => line.includes(`/${named}-`)),
        [],
      );
    });
  }

  test('no problem is outside the pages', () => assert.deepEqual(problems, []));
});

/** The folders in which the blocks compile, each as its files. A file that is written again begins a new folder. */
function foldersOf(blocks: readonly CodeBlock[]): readonly ReadonlyMap<string, string>[] {
  const folders: Map<string, string>[] = [];
  let written = new Map<string, string>();
  for (const { file, text } of blocks) {
    if (file === undefined) folders.push(new Map([...written, ['example.ts', text]]));
    else {
      if (written.size === 0 || written.has(basename(file))) {
        written = new Map(written);
        folders.push(written);
      }
      written.set(basename(file), text);
    }
  }
  return folders;
}
