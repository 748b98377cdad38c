/** The client as a bundler would ship it to a browser: its size by part, and that nothing else comes with it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { repositoryRoot } from '../harness/running-server.ts';

const kilobyte = 1000;
/** Octets of what a page loads to call, and to call, keep lists live and upload long files. */
const coreBytesMax = 8 * kilobyte;
const allBytesMax = 13.5 * kilobyte;

const entry = 'src/client/index.ts';

async function bundle(splitting: boolean) {
  const { outputFiles, metafile } = await build({
    absWorkingDir: repositoryRoot,
    entryPoints: [entry],
    bundle: true,
    splitting,
    minify: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    outdir: 'out',
    metafile: true,
    write: false,
  });
  const sizes = new Map(
    outputFiles.map(({ path, contents }) => [
      path.slice(path.indexOf('out/')),
      gzipSync(contents, { level: 9 }).length,
    ]),
  );
  return { sizes, metafile };
}

test('calls take 8 kB compressed, and live lists with uploads 5.5 kB more', async (t) => {
  const { sizes, metafile } = await bundle(true);
  const loaded = new Set<string>(['out/index.js']);
  for (const file of loaded)
    for (const { path, kind } of metafile.outputs[file]?.imports ?? [])
      if (kind === 'import-statement') loaded.add(path);
  const core = [...loaded].reduce((sum, file) => sum + (sizes.get(file) ?? 0), 0);
  // All in one file, as other clients are measured.
  const all = (await bundle(false)).sizes.get('out/index.js') ?? 0;
  t.diagnostic(`calls ${core} octets, with live lists, followers and uploads ${all}`);
  assert.ok(core > kilobyte && core <= coreBytesMax, `${core} octets for calls`);
  assert.ok(all > core && all <= allBytesMax, `${all} octets with live lists and uploads`);
});

test('it is its own folder and nothing else, and asks for no module', async () => {
  const { metafile } = await bundle(false);
  for (const [file, { imports }] of Object.entries(metafile.inputs)) {
    assert.match(file, /^src\/client\//);
    for (const { path } of imports) assert.match(path, /^src\/client\//);
  }
  assert.ok(Object.keys(metafile.inputs).length > 5);
});
