/** Templates of mails: mistakes are told together, with the file and the line. */
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { pathToFileURL } from 'node:url';
import { resolveConfiguration } from '../../src/config/configuration.ts';
import { mistakesFrom } from '../harness/mistakes.ts';
import { temporaryFolder } from '../harness/temporary-folder.ts';

function configured(files: Readonly<Record<string, string | Uint8Array>>, mail: object = {}) {
  const folder = temporaryFolder();
  mkdirSync(join(folder, 'mails'));
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, 'mails', name), content);
  const declaration = { collections: {}, mail: { templates: './mails', ...mail } };
  return resolveConfiguration(declaration, undefined, pathToFileURL(join(folder, 'comity.config.ts'))).mail;
}

function mistakesOf(
  files: Readonly<Record<string, string | Uint8Array>>,
  mail: object = {},
): readonly string[] {
  return mistakesFrom(() => configured(files, mail));
}

test('are read with their values', () => {
  const { templates, schedule } = configured({
    'welcome.txt': 'Subject: Hello {{name}}\r\n\r\nDear {{ name }},\r\nyour plan is {{plan}}.\r\n',
    'welcome.html': '<p>{{name}}</p>',
    '.hidden': 'x',
  });
  const welcome = templates.get('welcome');
  assert.deepEqual(welcome?.subject, ['Hello ', { value: 'name' }]);
  assert.deepEqual(welcome?.text, ['Dear ', { value: 'name' }, ',\nyour plan is ', { value: 'plan' }, '.\n']);
  assert.deepEqual([...(welcome?.values ?? [])], ['name', 'plan']);
  assert.equal(schedule.length, 7);
});

test('have their mistakes told together', () => {
  const mistakes = mistakesOf({
    'a.txt': 'Dear x',
    'b.txt': 'Subject: x\nno empty line\n',
    'c.txt': 'Subject: x\n\nfirst\n{{two words}}\n',
    'd.html': '<p>',
    'E.TXT': '',
    'f.txt': new Uint8Array([0xff]),
    'g.txt': `Subject: x\n\n${'x'.repeat(300_000)}`,
    'verify-email.txt': 'Subject: x\n\n{{nmae}}\n',
    'reset-password.txt': 'Subject: x\n\n{{cod}}{{link}}\n',
    'reset-password.html': '<p>{{title}}</p>',
  });
  for (const expected of [
    /a\.txt:1 must be "Subject: " and the subject/,
    /b\.txt:2 must be empty/,
    /b\.txt has no text/,
    /c\.txt:4 has braces that are no value; write a value as \{\{name\}\}/,
    /d\.html has no d\.txt beside it/,
    /E\.TXT: the name must be lower-case letters/,
    /f\.txt cannot be read: it is not UTF-8/,
    /g\.txt has 300012 octets; at most 262144/,
    /verify-email uses \{\{nmae\}\}; its values are title, email, code, link, validFor/,
    /verify-email\.txt must use \{\{code\}\} or \{\{link\}\}/,
    /reset-password uses \{\{cod\}\}.*did you mean code/,
    /reset-password\.html must use \{\{code\}\} or \{\{link\}\}/,
  ]) {
    assert.ok(
      mistakes.some((mistake) => expected.test(mistake)),
      `${expected} in ${mistakes.join('\n')}`,
    );
  }
});

test('must be in a folder that can be read, and the rest of mail is checked too', () => {
  assert.match(mistakesOf({}, { templates: './nowhere' })[0] ?? '', /the folder .*nowhere cannot be read/);
  assert.match(mistakesOf({}, { templates: 5 })[0] ?? '', /mail\.templates must be the path of a folder/);
  assert.match(mistakesOf({}, { template: 'x' })[0] ?? '', /mail\.template is not a member.*templates/);
  assert.match(mistakesOf({}, { schedule: [] })[0] ?? '', /mail\.schedule must be a list/);
  assert.match(mistakesOf({}, { schedule: [0.5] })[0] ?? '', /mail\.schedule must be a list/);
});
