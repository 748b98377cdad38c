/** A configuration as a whole, and the file that it is imported from. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { Type } from 'typebox';
import { resolveConfiguration } from '../../src/config/configuration.ts';
import { ConfigurationError } from '../../src/config/inspection.ts';
import { loadConfiguration } from '../../src/config/load-configuration.ts';
import { mistakesFrom } from '../harness/mistakes.ts';
import { temporaryFolder } from '../harness/temporary-folder.ts';

const folder = temporaryFolder();

const collections = { things: { schema: Type.Object({ name: Type.String() }) } };

/** Writes a configuration file under a name of its own and returns its path. */
function written(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

function mistakesIn(declaration: unknown): readonly string[] {
  return mistakesFrom(() => resolveConfiguration(declaration as never));
}

async function mistakesOfFile(path: string): Promise<readonly string[]> {
  try {
    await loadConfiguration(path);
  } catch (error) {
    if (error instanceof ConfigurationError) return error.mistakes;
    throw error;
  }
  return [];
}

test('fills in title, base and version', () => {
  const { title, base, apiVersion, settings } = resolveConfiguration({ collections });
  assert.deepEqual([title, base, apiVersion, settings], ['Comity', '/api/v1', '1', {}]);
});

for (const base of [
  '',
  '/',
  'api',
  '/api/',
  '/a//b',
  '/a b',
  '/../x',
  '/.',
  '/health',
  '/docs/v1',
  '/.well-known',
  '/ä',
]) {
  test(`refuses ${JSON.stringify(base)} as the base`, () => {
    assert.deepEqual(mistakesIn({ collections, base }), [
      'base must be a path such as /api/v1, outside the pages that the program itself serves',
    ]);
  });
}

test('takes other paths as the base', () => {
  for (const base of ['/api', '/v2', '/a/b/c', '/~x/v1.0'])
    assert.deepEqual(mistakesIn({ collections, base }), []);
});

test('refuses a version that cannot be a header field', () => {
  for (const apiVersion of ['', '1\r\n', 'a b', 1])
    assert.equal(mistakesIn({ collections, apiVersion }).length, 1);
});

test('reports mistakes of the whole and of its collections together', () => {
  assert.deepEqual(
    mistakesIn({ collections: { auth: collections.things }, colections: {}, title: '', settings: 5 }),
    [
      '"colections" is not a member of the configuration; did you mean collections?',
      'title must be a string of 1 to 200 characters',
      'settings must be an object, not a number',
      'collection auth: the name is reserved for a built-in resource or a table of the program',
    ],
  );
  assert.deepEqual(mistakesIn({}), ['collections must be an object, not undefined']);
  assert.deepEqual(mistakesIn(7), ['the configuration must be what defineConfig returns, not a number']);
});

test('refuses a configuration that says where it is itself', () => {
  assert.equal(mistakesIn({ collections, settings: { config: 'x' } }).length, 1);
});

test('loads the shop as the surface describes it', async () => {
  const { configuration, warnings } = await loadConfiguration('examples/shop/comity.config.ts');
  assert.deepEqual(warnings, []);
  const { collections: shop } = configuration;
  assert.deepEqual([...shop.keys()], ['categories', 'products', 'articles', 'notes']);
  const required = [...shop.values()].map((collection) => [...collection.required]);
  assert.deepEqual(required, [['name'], ['name', 'price', 'categoryId'], ['title'], ['text']]);
  assert.deepEqual(
    shop.get('categories')?.dependants.map(({ countAs }) => countAs),
    ['productCount'],
  );
  const products = shop.get('products');
  assert.deepEqual(
    products?.unique.flat().map(({ name }) => name),
    ['sku'],
  );
  assert.deepEqual([...(products?.unpatchable ?? [])], ['sku']);
  assert.equal(products?.access.read, 'public');
  const articles = shop.get('articles');
  assert.ok(articles?.putCreates && articles.softDelete && articles.requireMatch);
  assert.deepEqual([shop.get('notes')?.textField, shop.get('notes')?.access.read], ['text', 'owner']);
  for (const collection of shop.values()) assert.ok(collection.examples.length > 0 && collection.conceal);
  assert.deepEqual(
    [...configuration.senders.values()].map(({ name, preset, handOn }) => [name, preset, handOn.kind]),
    [
      ['billing', 'timestamped', 'handler'],
      ['forge', 'plain', 'handler'],
      ['partner', 'standard', 'handler'],
    ],
  );
});

test('says where it looked for a file that is missing, and how to make one', async () => {
  const path = join(folder, 'missing.ts');
  assert.deepEqual(await mistakesOfFile(path), [
    `there is no configuration file at ${path}; create one with "comity init", or give its path with --config or COMITY_CONFIG`,
  ]);
});

test('refuses a folder in place of a file', async () => {
  assert.deepEqual(await mistakesOfFile(folder), [
    `${folder} is not a file; give the path of the configuration file itself`,
  ]);
});

test('asks for a default export', async () => {
  const path = written('no-default.ts', 'export const collections = {};\n');
  assert.deepEqual(await mistakesOfFile(path), [
    `${path} has no default export; end it with "export default defineConfig({ collections: { ... } })"`,
  ]);
});

test('tells an error that the file throws with its line', async () => {
  const path = written(
    'throws.ts',
    '\n\nconst nothing: { a?: { b: number } } = {};\nexport default nothing.a.b;\n',
  );
  const [mistake = ''] = await mistakesOfFile(path);
  assert.ok(mistake.startsWith(`${path}:4: Cannot read properties of undefined`), mistake);
});

test('tells a syntax error with its line, in TypeScript and in JavaScript', async () => {
  const text = 'export default {\n  collections: {,\n};\n';
  const typescript = written('syntax.ts', text);
  const [mistake = ''] = await mistakesOfFile(typescript);
  assert.ok(mistake.startsWith(`${typescript}:2: Unexpected token`), mistake);
  const javascript = written('syntax.mjs', text);
  assert.deepEqual(await mistakesOfFile(javascript), [`${javascript}:2: Unexpected token ','`]);
});

test('tells a mistake in an imported file with the name and line of that file', async () => {
  for (const [name, text, sentence] of [
    ['deep-syntax.ts', '\nexport const deep = ;\n', '2: Expression expected'],
    ['deep-syntax.mjs', '\nexport const deep = ;\n', "2: Unexpected token ';'"],
    [
      'deep-twice.ts',
      '\nexport const deep: number = 1;\nconst deep = 2;\n',
      "3: Identifier 'deep' has already been",
    ],
    [
      'deep-enum.ts',
      '\nenum Colour { Red }\nexport const deep = 1;\n',
      '2: TypeScript enum is not supported',
    ],
    ['deep-throw.ts', '\nexport const deep = 1;\nthrow new Error("at import");\n', '3: at import'],
    [
      'deep-type.ts',
      '\nexport const deep = (undefined as any).foo;\n',
      '2: Cannot read properties of undefined',
    ],
    [
      'deep-call.ts',
      '\nfunction f(): void { null!.foo; }\nexport const deep = f();\n',
      '2: Cannot read properties of null',
    ],
    ['deep-module.ts', '\nimport "./nowhere.ts";\nexport const deep = 1;\n', '2: Cannot find module'],
    [
      'deep-package.ts',
      '\nimport "nowhere";\nexport const deep = 1;\n',
      "2: Cannot find package 'nowhere'; run",
    ],
  ] as const) {
    const deep = written(name, text);
    const main = written(
      `of-${name}`,
      `import { deep } from './${name}';\nexport default { collections: {}, deep };\n`,
    );
    const [mistake = '', ...others] = await mistakesOfFile(main);
    assert.ok(mistake.startsWith(`${deep}:${sentence}`), mistake);
    assert.deepEqual(others, []);
  }
  const data = written('deep.json', '{\n  "a": }');
  const main = written(
    'of-json.ts',
    `import a from './deep.json' with { type: 'json' };\nexport default a;\n`,
  );
  assert.match((await mistakesOfFile(main)).join('\n'), new RegExp(`^${data}: Unexpected token '}'`));
  written('deep-other.ts', 'export const other = 1;\n');
  const missing = written('of-other.ts', `\nimport { deep } from './deep-other.ts';\nexport default deep;\n`);
  assert.match((await mistakesOfFile(missing)).join('\n'), new RegExp(`^${missing}:2: The requested module`));
});

test('tells TypeScript that cannot be stripped as a mistake in the file', async () => {
  const path = written('enum.ts', 'enum Colour { Red }\nexport default { collections: {}, Colour };\n');
  const [mistake = '', ...others] = await mistakesOfFile(path);
  assert.ok(mistake.startsWith(`${path}:1: TypeScript enum is not supported`), mistake);
  assert.deepEqual(others, []);
});

test('suggests npm install for a package that is not there', async () => {
  const path = written(
    'package.ts',
    "import { defineConfig } from 'comity-is-not-here';\nexport default defineConfig({});\n",
  );
  const [mistake = ''] = await mistakesOfFile(path);
  assert.match(mistake, /Cannot find package 'comity-is-not-here'.*run "npm install"/);
});

test('names the file in every mistake of its content', async () => {
  const index = resolve('src/index.ts');
  const path = written(
    'mistakes.ts',
    `import { defineConfig, Type } from '${index}';
     const schema = Type.Object({ name: Type.String() });
     export default defineConfig({ collections: { things: { schema, unique: ['a'], indexes: ['b'] } } });`,
  );
  assert.deepEqual(await mistakesOfFile(path), [
    `${path}:3: collection things: indexes names "b", which is not a field`,
    `${path}:3: collection things: unique names "a", which is not a field`,
  ]);
});
