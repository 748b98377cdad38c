/** `comity openapi` and `comity types`: what they print, and that the compiler takes it. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { runCommand, spawnCommand } from '../harness/command-line.ts';
import { shopConfig as shop, startServer } from '../harness/running-server.ts';
import { temporaryFolder } from '../harness/temporary-folder.ts';

const desk = 'examples/help-desk/comity.config.ts';
const parcels = 'test/cli/fixtures/parcels.config.ts';
const run = promisify(execFile);

test('openapi prints the document that a server serves', async (context) => {
  const server = await startServer({ config: shop });
  context.after(() => server.stop());
  for (const part of [[], ['--part', 'operator']]) {
    const { code, stdout, stderr } = await runCommand(['openapi', '--config', shop, ...part]);
    assert.deepEqual([code, stderr], [0, '']);
    const [, name] = part;
    const response = await fetch(`${server.url}/openapi.json${name === undefined ? '' : `?part=${name}`}`);
    assert.deepEqual(JSON.parse(stdout), await response.json());
  }
});

test('openapi writes the whole of a long document into a pipe, and nothing into the folder of the data', async () => {
  const cwd = temporaryFolder();
  const { code, stdout, stderr } = await spawnCommand(['openapi', '--config', resolve(shop)], {}, { cwd })
    .ended;
  assert.deepEqual([code, stderr], [0, '']);
  assert.ok('paths' in JSON.parse(stdout));
  assert.deepEqual(readdirSync(cwd), []);
});

for (const command of ['openapi', 'types'])
  test(`${command} tells mistakes of the configuration, and exits 2`, async () => {
    const file = join(temporaryFolder(), 'wrong.config.mjs');
    writeFileSync(file, 'export default { collections: { tickets: {} } };');
    const { code, stdout, stderr } = await runCommand([command, '--config', file]);
    assert.deepEqual([code, stdout], [2, '']);
    assert.match(stderr, /schema/);
  });

test('types prints those of the help desk as the example has them, under 30 kB', async () => {
  const { code, stdout, stderr } = await runCommand(['types', '--config', desk]);
  assert.deepEqual([code, stderr], [0, '']);
  assert.equal(stdout, readFileSync('examples/help-desk/api.ts', 'utf8'), `comity types -c ${desk}`);
  assert.ok(Buffer.byteLength(stdout) < 30_000);
});

const usage = `
import type { Api, FileReference, FileValue, Parcel, ParcelCreate, ParcelPatch, SheepItem } from './api.ts';
import type { Api as Contract, ApiAction, ApiCollection } from '${resolve('src/client/api.ts')}';

type Same<T, U> = [T] extends [U] ? ([U] extends [T] ? true : never) : never;
const holds = <_ extends true>(): void => undefined;
const fits = <A extends Contract, C extends ApiCollection, E extends ApiAction>(): [A?, C?, E?] => [];
type Collections = Api['collections'];
fits<Api, Collections['parcels'], Collections['parcels']['actions']['photo']>();
fits<Api, Collections['sheep'], Api['actions']['logo']>();
fits<Api, Collections['users'], Api['actions']['hook']>();

holds<Same<Parcel['state'], "'new'" | 'sent "x"' | 3>>();
holds<Same<Parcel['size'], 's' | 'l' | null>>();
holds<Same<Parcel['tags'], (string | number)[]>>();
holds<Same<Parcel['pair'], [string, boolean]>>();
holds<Same<Parcel['names'], { [name: string]: number }>>();
holds<Same<Required<Parcel>['both'], { a: string } & { b: number }>>();
holds<Same<Required<Parcel>['address'], { city: string; country: string; floor?: number }>>();
holds<Same<Required<ParcelCreate>['address'], { city: string; country?: string; floor?: number }>>();
holds<Same<Required<ParcelPatch>['address'], { city?: string; country?: string | null; floor?: number | null } | null>>();
holds<Same<Parcel['odd-name'], string | undefined>>();
const third: string | undefined = ({} as Parcel).plan?.next?.next?.name;
holds<Same<Parcel['deletedAt'] & Parcel['label'] & Parcel['packedBy'], string | undefined>>();
holds<Same<undefined extends Parcel['cost'] ? true : never, true>>();
holds<Same<undefined extends SheepItem['parcelId'] ? true : never, true>>();
const least = { to: '', sku: '', size: null, tags: [], names: {}, pair: ['', true] } satisfies ParcelCreate;
holds<Same<Exclude<keyof Parcel, keyof ParcelCreate>, 'id' | 'createdAt' | 'updatedAt' | 'deletedAt' | 'label' | 'packedBy'>>();
holds<Same<Exclude<keyof ParcelCreate, keyof ParcelPatch>, 'sku' | 'firm'>>();
holds<Same<Required<Parcel>['scan'], FileValue>>();
holds<Same<Parcel['pictures'], FileValue[]>>();
holds<Same<Required<ParcelCreate>['scan'], FileReference>>();
holds<Same<ParcelPatch['scan'], FileReference | null | undefined>>();
holds<Same<Required<ParcelPatch>['pictures'], FileReference[] | null>>();
holds<Same<Collections['parcels']['counts'], 'flock'>>();
holds<Same<Collections['parcels']['actions']['photo'], { on: 'member'; route: 'PUT /photos/{side}'; input: { photo: Blob; more?: Blob[] } }>>();
holds<Same<Collections['parcels']['actions']['list'], { on: 'collection'; route: 'GET /list'; output: string }>>();
holds<Same<Collections['sheep']['references'], { parcelId: 'parcels' }>>();
holds<Same<Api['actions']['logo']['output'], Uint8Array>>();
holds<Same<Api['events'], { 'invoice.paid': { invoiceId: string }; 'day.closed': { [name: string]: unknown } }>>();
holds<Same<Api['codes'], 'not_now'>>();
// @ts-expect-error a required member is missing
const wrong: ParcelCreate = { to: '' };
// @ts-expect-error no collection has this name
type Misnamed = Api['collections']['parcles'];
export { least, third, wrong, type Misnamed };
`;

test('types prints what the strictest compiler takes, for each kind of schema and conduct', async () => {
  const folder = temporaryFolder();
  const { code, stdout, stderr } = await runCommand(['types', '--config', parcels]);
  assert.deepEqual([code, stderr], [0, '']);
  assert.equal((await runCommand(['types', '--config', parcels])).stdout, stdout);
  assert.doesNotMatch(stdout, /import|typebox|node:/i);
  writeFileSync(join(folder, 'api.ts'), stdout);
  writeFileSync(join(folder, 'usage.ts'), usage);
  const compilerOptions = {
    ...{
      strict: true,
      skipLibCheck: false,
      exactOptionalPropertyTypes: true,
      noUncheckedIndexedAccess: true,
    },
    ...{ noEmit: true, module: 'nodenext', target: 'es2024', lib: ['es2024', 'dom'], types: [] },
    ...{
      allowImportingTsExtensions: true,
      noUnusedLocals: true,

      declaration: true,
    },
  };
  writeFileSync(
    join(folder, 'tsconfig.json'),
    JSON.stringify({ compilerOptions, files: ['api.ts', 'usage.ts'] }),
  );
  const compiler = resolve('node_modules/typescript/bin/tsc');
  const { output } = await run(process.execPath, [compiler, '-p', folder]).then(
    () => ({ output: '' }),
    ({ stdout: said }: { stdout: string }) => ({ output: `${said}\n${stdout}` }),
  );
  assert.equal(output, '');
});
