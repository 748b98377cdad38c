/** Source maps of the package: every place of our own code as before, and of packages at least the file. */
import assert from 'node:assert/strict';
import { SourceMap, type SourceMapping } from 'node:module';
import { test } from 'node:test';
import { build } from 'esbuild';
import { thinSourceMap } from '../../scripts/thin-source-map.ts';

test('keeps each place of own code, and the file of each place of a package, in fewer octets', async () => {
  const { outputFiles } = await build({
    entryPoints: ['src/realtime/websocket/frames.ts'],
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node24',
    minifyWhitespace: true,
    lineLimit: 160,
    sourcemap: 'linked',
    sourcesContent: false,
    outdir: 'dist',
    write: false,
  });
  const text = (ending: string): string => outputFiles.find(({ path }) => path.endsWith(ending))?.text ?? '';
  const thin = thinSourceMap(text('.map'));
  assert.ok(thin.length < text('.map').length * 0.8, `${thin.length} of ${text('.map').length}`);
  const before = new SourceMap(JSON.parse(text('.map')));
  const after = new SourceMap(JSON.parse(thin));
  let own = 0;
  let others = 0;
  for (const [line, code] of text('.js').split('\n').entries()) {
    for (let column = 0; column < code.length; column += 1) {
      const place = before.findEntry(line, column);
      const kept = after.findEntry(line, column);
      if (!('originalSource' in place && 'originalSource' in kept)) continue;
      const isPackage = place.originalSource.includes('node_modules');
      const wanted = isPackage ? [place.originalSource] : placeIn(place);
      assert.deepEqual(isPackage ? [kept.originalSource] : placeIn(kept), wanted);
      if (isPackage) others += 1;
      else own += 1;
    }
  }
  assert.ok(own > 1000 && others > 1000, `${own} and ${others}`);
});

function placeIn({ originalSource, originalLine, originalColumn }: SourceMapping) {
  return [originalSource, originalLine, originalColumn];
}
