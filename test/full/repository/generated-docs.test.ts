import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findGeneratedDocsProblems } from '../../../scripts/checks/generated-docs.ts';
import { renderGeneratedPages } from '../../../scripts/generated-docs.ts';
import { repositoryRoot } from '../../../scripts/source-tree.ts';
import { assertNoProblems, makeTree } from '../../repository/fixture-tree.ts';

const renderer =
  "export const path = 'docs/reference/errors.md';\nexport const render = () => '# Errors\\n\\nnot_found\\n';\n";

test('the registries of errors and of settings each have their page', async () => {
  const paths = (await renderGeneratedPages(repositoryRoot)).map(({ path }) => path);
  for (const page of ['docs/reference/errors.md', 'docs/reference/settings.md']) {
    assert.ok(paths.includes(page), `No file of scripts/docs/ makes ${page}`);
  }
});

test('a page that equals what its renderer makes is left alone', async (t) => {
  const page = '# Errors\n\nnot_found\n';
  const root = makeTree(t, { 'scripts/docs/errors.ts': renderer, 'docs/reference/errors.md': page });
  assertNoProblems(await findGeneratedDocsProblems(root));
});

const pages: Readonly<Record<string, readonly [page: string, line: number]>> = {
  'a code that the code does not have': ['# Errors\n\nnot_found\ngone\n', 4],
  'a code too few': ['# Errors\n\n', 3],
  'an edit by hand': ['# Errors\n\nnot_there\n', 3],
};

for (const [fault, [page, line]] of Object.entries(pages)) {
  test(`finds a page with ${fault}, and the line`, async (t) => {
    const root = makeTree(t, { 'scripts/docs/errors.ts': renderer, 'docs/reference/errors.md': page });
    const message = 'Differs from what scripts/docs/errors.ts generates: run npm run docs';
    assert.deepEqual(await findGeneratedDocsProblems(root), [
      { file: 'docs/reference/errors.md', line, message },
    ]);
  });
}

test('takes a renderer of several pages, and finds the one that differs', async (t) => {
  const several =
    "export const renderPages = () => ['a', 'b'].map((name) => ({ path: 'docs/' + name + '.md', text: '# ' + name }));\n";
  const root = makeTree(t, {
    'scripts/docs/several.ts': several,
    'docs/a.md': '# a',
    'docs/b.md': '# changed',
  });
  assert.deepEqual(
    (await findGeneratedDocsProblems(root)).map(({ file }) => file),
    ['docs/b.md'],
  );
});

test('links a section sign in a page to its clause', async (t) => {
  const sign = '\u00a7';
  const root = makeTree(t, {
    'scripts/docs/errors.ts': renderer.replace('not_found', `${sign}4.5 and RFC 9110 ${sign}4.5`),
    'docs/specification/4-methods.md': '<a id="s4-5"></a>\n\n## 4.5 PUT\n',
  });
  const [page] = await renderGeneratedPages(root);
  assert.equal(
    page?.text,
    `# Errors\n\n[${sign}4.5](../specification/4-methods.md#s4-5) and RFC 9110 ${sign}4.5\n`,
  );
});

test('finds a page that has not been written', async (t) => {
  const root = makeTree(t, { 'scripts/docs/errors.ts': renderer });
  assert.deepEqual(
    (await findGeneratedDocsProblems(root)).map(({ file }) => file),
    ['docs/reference/errors.md'],
  );
});

test('refuses a tree without renderers, in which nothing would be compared', async (t) => {
  assert.equal((await findGeneratedDocsProblems(makeTree(t, {}))).length, 1);
});

test('refuses a renderer without its two exports', async (t) => {
  const root = makeTree(t, { 'scripts/docs/errors.ts': "export const page = 'docs/errors.md';\n" });
  await assert.rejects(findGeneratedDocsProblems(root), /to export path and render\(\), got page/);
});
