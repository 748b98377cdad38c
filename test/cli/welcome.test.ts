/** The texts of the command line that need no running program: what `serve` prints, a new project, and the progress bar. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { finished } from 'node:stream/promises';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { Type } from 'typebox';
import { starterFiles } from '../../src/cli/init.ts';
import { readConfiguration } from '../../src/cli/read-configuration.ts';
import { welcomeText } from '../../src/cli/serve.ts';
import { showProgress } from '../../src/cli/terminal.ts';
import { resolveConfiguration } from '../../src/config/configuration.ts';
import type { Environment } from '../../src/config/load-settings.ts';
import type { CollectionDeclaration } from '../../src/model/collection.ts';
import type { MadeSecret } from '../../src/webhooks/receiving/sender-secrets.ts';
import { temporaryFolder } from '../harness/temporary-folder.ts';

const schema = Type.Object({ text: Type.String() });

function welcome(collections: Record<string, CollectionDeclaration>, adminKey?: string): string {
  const configuration = resolveConfiguration({ collections });
  const where = { url: 'http://[::1]:4000', tlsUrl: undefined, data: '/var/data' };
  return welcomeText({ ...where, adminKey, senderSecrets: [], configuration });
}

/** With senders whose secrets were made just now. */
function welcomeOf(...presets: readonly ('plain' | 'standard')[]): string {
  const senders = Object.fromEntries(presets.map((preset) => [preset, { preset }]));
  const configuration = resolveConfiguration({ collections: { notes: { schema } }, senders });
  const senderSecrets = presets.map((sender): MadeSecret => {
    return {
      sender,
      use: 'receive',
      variable: `${sender.toUpperCase()}_WEBHOOK_SECRET`,
      secret: `whsec_${sender}`,
    };
  });
  const where = { url: 'http://[::1]:4000', tlsUrl: undefined, data: '/var/data', adminKey: undefined };
  return welcomeText({ ...where, senderSecrets, configuration });
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

test('shows the secrets of senders only when this start made them', () => {
  const text = welcomeOf('standard', 'plain');
  assert.match(
    text,
    /^ {2}export STANDARD_WEBHOOK_SECRET=whsec_standard\n {2}export PLAIN_WEBHOOK_SECRET=whsec_plain$/m,
  );
  assert.match(text, /shown only once/);
  assert.ok(!welcome({ notes: { schema } }).includes('whsec_'));
});

test('shows how to post a message that only its body signs, and no other', () => {
  const line = welcomeOf('standard', 'plain').match(/^ {2}signed=.*$/m)?.[0] ?? '';
  const made = `$(printf '{}' | openssl dgst -sha256 -hmac "$PLAIN_WEBHOOK_SECRET" -r | cut -d' ' -f1)`;
  const fields = `-H "x-hub-signature-256: sha256=$signed" -H 'Content-Type: application/json'`;
  assert.equal(line, `  signed=${made}; curl -i ${fields} -d '{}' http://[::1]:4000/api/v1/webhooks/plain`);
  assert.doesNotMatch(welcomeOf('standard'), /openssl/);
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

/** Writes the configuration and reads it as the commands do. */
async function reading(text: string, environment: Environment = {}) {
  const folder = temporaryFolder();
  const config = join(folder, 'comity.config.ts');
  writeFileSync(config, text);
  return { ...(await readConfiguration(environment, { config })), config };
}

test('a new project has a sender to uncomment, which is sound', async () => {
  const text = starterFiles({ name: 'x', comity: '*', bringsNode: false }).get('comity.config.ts') ?? '';
  // As much of the package as the file asks for: all of it takes a second to load.
  const define = import.meta.resolve('../../src/config/define.ts');
  const face = `data:text/javascript,export * from '${define}'; export { Type } from '${import.meta.resolve('typebox')}';`;
  const uncommented = text
    .replace("'comity'", () => JSON.stringify(face))
    .replaceAll(/^ {2}\/\/ (?=senders: | |\},)/gm, '');
  assert.notEqual(uncommented.indexOf('\nsenders: {'), -1);
  const { configuration, warnings, senderSecrets, module, config } = await reading(uncommented, {
    GITHUB_WEBHOOK_SECRET: 'as long as a secret is',
  });
  const [github] = configuration.senders.values();
  assert.deepEqual([github?.name, github?.handOn.kind, warnings], ['github', 'handler', []]);
  assert.deepEqual(senderSecrets.get('GITHUB_WEBHOOK_SECRET'), ['as long as a secret is']);
  assert.equal(module, pathToFileURL(config).href);
});

test('warns of a sender that signs the URL, unless the public one is set', async () => {
  const text = "export default { collections: {}, senders: { sms: { preset: 'twilio' } } };";
  const { warnings } = await reading(text);
  assert.match(warnings.join(), /^sender sms signs the URL that it calls: set COMITY_PUBLIC_URL /);
  const environment = { COMITY_PUBLIC_URL: 'https://shop.example', SMS_WEBHOOK_SECRET: 'weak' };
  assert.deepEqual((await reading(text, environment)).warnings, [
    'SMS_WEBHOOK_SECRET has fewer than 16 characters and could be guessed',
  ]);
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
