/** The texts of the command line that need no running program: what `serve` prints, and the progress bar. */
import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { finished } from 'node:stream/promises';
import { test } from 'node:test';
import { Type } from 'typebox';
import { showProgress } from '../../src/cli/progress.ts';
import { welcomeText } from '../../src/cli/welcome.ts';
import { resolveConfiguration } from '../../src/config/configuration.ts';
import type { CollectionDeclaration } from '../../src/model/collection.ts';

const schema = Type.Object({ text: Type.String() });

function welcome(collections: Record<string, CollectionDeclaration>, adminKey?: string): string {
  const configuration = resolveConfiguration({ collections });
  return welcomeText({ url: 'http://[::1]:4000', data: '/var/data', adminKey, configuration });
}

/** A stream that passes for a terminal, and what was written to it. */
function screen(isTTY: boolean): { stream: NodeJS.WriteStream; written: () => Promise<string> } {
  const stream = Object.assign(new PassThrough({ encoding: 'utf8' }), { isTTY });
  let text = '';
  stream.on('readable', () => {
    text += stream.read() ?? '';
  });
  return {
    stream: stream as unknown as NodeJS.WriteStream,
    written: async () => {
      stream.end();
      await finished(stream);
      return text;
    },
  };
}

test('starts with the ready line, whole', () => {
  assert.equal(welcome({ notes: { schema } }).split('\n')[0], 'comity listening on http://[::1]:4000');
});

test('shows the administrator key only when there is one to show', () => {
  assert.match(welcome({ notes: { schema } }, 'sk_made'), /^ {2}export COMITY_ADMIN_KEY=sk_made$/m);
  assert.ok(!welcome({ notes: { schema } }).includes('sk_'));
});

test('sends the key with commands for collections that are not public', () => {
  const [read = '', queried = ''] = welcome({ notes: { schema } }).match(/^ {2}curl .*$/gm) ?? [];
  assert.equal(read, '  curl -H "X-API-Key: $COMITY_ADMIN_KEY" http://[::1]:4000/api/v1/notes');
  assert.match(queried, /X-API-Key.* '\{"sort":\["-createdAt"\],"limit":5\}' /);
});

test('keeps an apostrophe of an example inside its shell word', () => {
  const text = welcome({ notes: { schema, examples: [{ text: "it's; rm -rf" }] } });
  assert.ok(text.includes(`-d '{"text":"it'\\''s; rm -rf"}' `));
});

test('proposes nothing where nothing is declared', () => {
  assert.ok(!welcome({}).includes('curl'));
});

test('draws progress on a terminal and clears it at the end', async () => {
  const { stream, written } = screen(true);
  const progress = showProgress(stream, 'Copying');
  progress.advance(1, 2);
  progress.advance(2, 2);
  progress.end();
  const text = await written();
  assert.match(text, /\rCopying █{15}░{15} 50 %\rCopying █{30} 100 %\r/);
  assert.ok(text.endsWith('\r\u001b[2K'));
});

test('draws no progress into a file or a pipe', async () => {
  const { stream, written } = screen(false);
  const progress = showProgress(stream, 'Copying');
  progress.advance(1, 2);
  progress.end();
  assert.equal(await written(), '');
});
