import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findSpecificationProblems } from '../../scripts/checks/specification.ts';
import { assertNoProblems, makeTree } from './fixture-tree.ts';

const s = '\u00a7';

/** A page with one section, whose clauses are the given ones. */
function pageOf(...clauses: readonly string[]): Readonly<Record<string, string>> {
  const text = `<a id="s4"></a>\n\n# 4. Methods\n\n<a id="s4-5"></a>\n\n## 4.5 PUT\n\n${clauses.join('\n\n')}\n`;
  return { 'docs/specification/4-methods.md': text };
}

const clause = (number: string, words: string) =>
  `<a id="s${number.replaceAll('.', '-')}"></a>**${number}** ${words}`;

test('takes a clause that a header cites, one that a title cites, and one that names a test', (t) => {
  const root = makeTree(t, {
    ...pageOf(
      clause('4.5.1', 'Replaces.'),
      clause('4.5.2', 'Refuses.'),
      clause('4.5.3', `Creates.\n<!-- test: PUT of \${what} creates -->`),
    ),
    'test/wire/put.test.ts': `/** PUT (${s}4.5.1). */\ntest('refuses a hole (${s}4.5.2)', () => {});\n`,
    'test/create.test.ts': `for (const what of [1]) it(\`PUT of \${what} creates\`, () => {});\n`,
  });
  assertNoProblems(findSpecificationProblems(root, [], []));
});

const faults: Readonly<Record<string, readonly [clauses: readonly string[], message: RegExp]>> = {
  'a clause without a test': [[clause('4.5.1', 'Replaces.')], /^No test proves clause 4\.5\.1/],
  'a test that is not there': [
    [clause('4.5.1', 'Is.\n<!-- test: was renamed -->')],
    /^No test has the title "was renamed"/,
  ],
  'an anchor that is there twice': [
    [clause('4.5.1', 'A.\n<!-- test: replaces -->'), clause('4.5.1', 'B.\n<!-- test: replaces -->')],
    /^The anchor of clause 4\.5\.1 exists twice/,
  ],
  'a link to an anchor that is not there': [
    [clause('4.5.1', 'As [there](#s4-5) and [there](4-methods.md#s4-6).\n<!-- test: replaces -->')],
    /^4-methods\.md#s4-6 does not exist$/,
  ],
  'an anchor of another number': [
    ['<a id="s4-5-1"></a>**4.5.2** A.\n<!-- test: replaces -->'],
    /^The anchor has the number 4\.5\.1, but the text after it 4\.5\.2/,
  ],
};

for (const [fault, [clauses, message]] of Object.entries(faults)) {
  test(`finds ${fault}, and the line`, (t) => {
    const root = makeTree(t, { ...pageOf(...clauses), 'test/put.test.ts': "test('replaces', () => {});\n" });
    const problems = findSpecificationProblems(root, [], []);
    assert.equal(problems.length, 1);
    assert.match(problems[0]?.message ?? '', message);
    assert.ok((problems[0]?.line ?? 0) >= 9);
  });
}

test('finds a node and an answer of the decision graph that no clause speaks of', (t) => {
  const page = pageOf(
    clause('4.5.3', 'Creates where the collection says so (RFC 9110 ' + s + '9.1).\n<!-- test: creates -->'),
  );
  const root = makeTree(t, { ...page, 'test/put.test.ts': "test('creates', () => {});\n" });
  assertNoProblems(findSpecificationProblems(root, ['creates_here', 'method_known'], []));
  assert.deepEqual(
    findSpecificationProblems(root, ['creates_here', 'visible'], []).map(
      ({ message }) => message.split(':')[0],
    ),
    ['No clause belongs to "visible" of the decision graph'],
  );
});

test('finds a clause of the suite of conduct that none names, one that two name, and one that is not there', (t) => {
  const page = pageOf(
    clause('4.5.1', 'A.\n<!-- conduct: put-replaces,\nput-gone -->'),
    clause('4.5.2', 'B.\n<!-- conduct: put-replaces -->'),
  );
  const problems = findSpecificationProblems(makeTree(t, page), [], ['put-replaces', 'lost-update']);
  assert.deepEqual(
    problems.map(({ message }) => message.split(':')[0]),
    [
      'No clause of the suite of conduct has the id "put-gone"',
      'Two clauses name "put-replaces" of the suite of conduct',
      'No clause names "lost-update" of the suite of conduct',
    ],
  );
});
