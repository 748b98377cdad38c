import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findLintProblems } from '../../../scripts/checks/lint.ts';
import { assertNoProblems, linkModules, makeTree, ownFiles } from '../../repository/fixture-tree.ts';

const configuration = ownFiles('biome.json', 'package.json', 'tsconfig.json', '.gitignore');

test('each rule that the house relies on is on', async (t) => {
  const faults: Readonly<Record<string, string>> = {
    'style/noDefaultExport': 'export default 1;',
    'style/noNonNullAssertion': 'export const go = (a: string[] | undefined) => a!.length;',
    'style/noProcessEnv': 'export const home = process.env.HOME;',
    'style/useImportType': "import { A } from './plain.ts';\nexport type B = A;",
    'style/useNodejsImportProtocol': "import { join } from 'path';\nexport const path = join('a', 'b');",
    'suspicious/noConsole': "export function go() {\n  console.log('a');\n}",
    'suspicious/noEmptyBlockStatements':
      'export function go() {\n  try {\n    plan();\n  } catch {}\n}\nfunction plan() {}',
    'suspicious/noExplicitAny': 'export const go = (a: any): string => a;',
    'suspicious/noVar': 'export var a = 1;',
    'performance/noBarrelFile': "export { A } from './plain.ts';",
    'performance/noReExportAll': "export * from './plain.ts';",
    'performance/useTopLevelRegex': 'export const go = (a: string) => /a+/.test(a);',
    'nursery/noFloatingPromises':
      'export function go() {\n  later();\n}\nasync function later(): Promise<void> {}',
    'correctness/noUnusedImports': "import { A } from './plain.ts';\nexport const a = 1;",
    'correctness/noUndeclaredDependencies': "import { a } from 'not-declared';\nexport const b = a;",
    format: 'export const a = "1"',
  };
  const places = Object.fromEntries(
    Object.keys(faults).map((rule, index) => [`src/server/f${index}.ts`, rule]),
  );
  const files = Object.values(faults).map((text, index) => [`src/server/f${index}.ts`, `${text}\n`]);
  const root = makeTree(t, {
    ...configuration,
    'src/server/plain.ts': 'export type A = string;\n',
    ...Object.fromEntries(files),
  });
  linkModules(root);
  const problems = await findLintProblems(root);
  for (const [file, rule] of Object.entries(places)) {
    const said = problems.filter((problem) => problem.file === file).map(({ message }) => message);
    assert.ok(
      said.some((message) => message.includes(rule)),
      `${rule} is not reported, only: ${said}`,
    );
  }
  assert.deepEqual(
    problems.filter(({ file }) => file === 'src/server/plain.ts'),
    [],
  );
});

test('the sinks may print and a configuration may have a default export', async (t) => {
  const print = "console.log('ready');\n";
  const root = makeTree(t, {
    ...configuration,
    'src/observe/log.ts': print,
    'scripts/print.ts': print,
    'examples/shop/comity.config.ts': 'export default {};\n',
  });
  linkModules(root);
  assertNoProblems(await findLintProblems(root));
});
