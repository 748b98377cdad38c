import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findSectionProblems } from '../../scripts/checks/sections.ts';
import { assertNoProblems, makeTree, placesOf } from './fixture-tree.ts';

/** The section sign, which would be judged itself if it stood here. */
const s = '\u00a7';

// Words that make a citation only where they are put together.
const design = 'design';
const surface = 'surface';
const habit = 'habit';

const specification = {
  'docs/specification/4-methods.md': [
    '<a id="s4"></a>\n\n# 4. Methods\n\n<a id="s4-5"></a>\n\n## 4.5 PUT\n',
    '<a id="s4-5-3"></a>**4.5.3** A missing resource is 404.\n<a id="s4-6"></a>\n\n## 4.6 PATCH\n',
  ].join('\n'),
};

test('finds a section that no clause has, in code, tests, scripts and documentation', (t) => {
  const root = makeTree(t, {
    ...specification,
    'src/put.ts': `/** PUT (${s}4.5, ${s}4.5.9). */\n`,
    'test/put.test.ts': `test('a title (${s}11)', () => {});\n`,
    'scripts/put.ts': `// One.\n// ${s}4.5.3 and ${s}4.5.4.\n`,
    'docs/guides/put.md': `See ${s}4.4 to ${s}4.6.\n`,
    'README.md': `See ${s}12.\n`,
  });
  assert.deepEqual(placesOf(findSectionProblems(root)), [
    'README.md:1',
    'docs/guides/put.md:1',
    'scripts/put.ts:2',
    'src/put.ts:1',
    'test/put.test.ts:1',
  ]);
});

test('lets sections of the specification and of named standards stand, also in lists and over line breaks', (t) => {
  const root = makeTree(t, {
    ...specification,
    'src/put.ts': [
      `/** PUT (${s}4.5.3; RFC 9110 ${s}9.3.4, ${s}15.5.5 and ${s}8.8), ${s}4.5 to ${s}4.6; RFC 9112`,
      ` * ${s}6.1; OpenID Connect Core 1.0 ${s}5.1; Idempotency-Key ${s}2.6. The sign ${s} alone is no citation. */`,
    ].join('\n'),
  });
  assertNoProblems(findSectionProblems(root));
});

test('takes a bare section behind other words for one of ours, whatever standard was named before', (t) => {
  const root = makeTree(t, {
    ...specification,
    'src/put.ts': `/** RFC 9298 ${s}3. The stream closes (${s}3.1). */\n`,
  });
  assert.deepEqual(placesOf(findSectionProblems(root)), ['src/put.ts:1']);
});

test('finds citations of documents that are not in the repository', (t) => {
  const lines = [
    `The store (${design} ${s}4).`,
    `Lists (${surface}, "Resources").`,
    `A URL (${s}4.5, ${surface} "Auth").`,
    `One union (style ${habit} 6.16).`,
    `Wires what part ${4} is made of.`,
    `As ${surface}.md has it.`,
  ];
  const root = makeTree(t, {
    ...specification,
    'src/cited.ts': lines.map((line) => `// ${line}\n`).join(''),
  });
  assert.deepEqual(
    placesOf(findSectionProblems(root)),
    lines.map((_, index) => `src/cited.ts:${index + 1}`),
  );
});

test('lets the same words stand where they cite nothing', (t) => {
  const root = makeTree(t, {
    ...specification,
    'src/words.ts':
      '// Exit codes are part of the surface: `Type` is one. By design, a part of 4 octets is surfaced.\n',
    'docs/specification/9-versioning.md': `The methods of [part ${4}](4-methods.md).\n`,
  });
  assertNoProblems(findSectionProblems(root));
});
