import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseRequestDisposition } from '../../src/http/syntax/content-disposition.ts';
import {
  extensionOf,
  fileNameBytesMax,
  fileNameFrom,
  plainFileName,
} from '../../src/http/syntax/file-name.ts';

const latin1 = (text: string): string => Buffer.from(text, 'utf8').toString('latin1');

describe('the name of a file', () => {
  const long = 'é'.repeat(200);
  for (const [title, sent, name] of [
    ['is the last part of a path of any system', 'C:\\docs\\a/b.txt', 'b.txt'],
    ['is `file` for a step of a path', '../..', 'file'],
    ['is `file` for an empty one', '', 'file'],
    ['is `file` for spaces and joiners alone', ' \u200d\u00a0', 'file'],
    ['may begin with a dot', '.htaccess', '.htaccess'],
    ['has no controls, and nothing that turns the text', 'a\u0000\u007f\u202egnp.exe', 'agnp.exe'],
    ['keeps the joiners of words', 'می\u200cخواهم.txt', 'می\u200cخواهم.txt'],
    ['keeps the joiners of emoji', '👩\u200d💻.png', '👩\u200d💻.png'],
    ['is composed, as a Mac sends it', 're\u0301sume\u0301.pdf', 'résumé.pdf'],
    ['is composed across what it loses', 'e\u0000\u0301', 'é'],
    ['is composed in Korean', '\u1112\u1161\u11ab.hwp', '한.hwp'],
    ['keeps what only Windows reserves', 'CON', 'CON'],
    ['keeps a dot at the end', 'a: b?.', 'a: b?.'],
    ['has no lone surrogates', 'a\ud800b', 'a\ufffdb'],
    ['is cut before its extension', `${long}.jpeg`, `${'é'.repeat(125)}.jpeg`],
    ['is cut between characters', `${'😀'.repeat(70)}`, '😀'.repeat(63)],
  ] as const) {
    test(title, () => {
      const found = fileNameFrom(sent);
      assert.equal(found, name);
      assert.ok(Buffer.byteLength(found) <= fileNameBytesMax);
      assert.equal(fileNameFrom(found), found, 'a name stays what it is');
    });
  }

  test('of exactly 255 octets is whole', () => {
    const name = `${'a'.repeat(251)}.png`;
    assert.equal(fileNameFrom(name), name);
    assert.equal(fileNameFrom(`a${name}`), name);
  });

  test('in a part of a form is UTF-8 with the three escapes of browsers', () => {
    assert.equal(plainFileName(latin1('Zoë %22100%%22%0D%0A %20.png')), 'Zoë "100%" %20.png');
    assert.equal(plainFileName('\xff'), '');
  });

  test('ends in its extension', () => {
    const names = ['a.PNG', 'a', '.htaccess', 'a.tar.gz', 'a.', 'a.äh'];
    assert.deepEqual(names.map(extensionOf), ['png', '', 'htaccess', 'gz', '', '']);
  });
});

describe('Content-Disposition of a request', () => {
  for (const [value, type, fileName] of [
    ['attachment', 'attachment', undefined],
    ['Inline; FileName=a.txt', 'inline', 'a.txt'],
    ['attachment; filename="a \\"b\\".txt"', 'attachment', 'a "b".txt'],
    [latin1('attachment; filename="Zoë.png"'), 'attachment', 'Zoë.png'],
    ['attachment; filename="Zo\xeb.png"', 'attachment', 'Zoë.png'],
    ["attachment; filename*=UTF-8''Zo%C3%AB%20%e2%82%ac.png", 'attachment', 'Zoë €.png'],
    ['attachment; filename="b"; filename*=utf-8\'en\'a', 'attachment', 'a'],
    ["attachment; filename*=utf-8''a; filename=b", 'attachment', 'a'],
    ["attachment; filename*=iso-8859-1'en'%A3%20rates", 'attachment', '£ rates'],
    ["attachment; filename*=utf-8''%ff; filename=b", 'attachment', 'b'],
    ["attachment; filename*=koi8-r''%c1; filename=b", 'attachment', 'b'],
    ['attachment; filename=100%25.txt', 'attachment', '100%25.txt'],
    ['attachment; filename="../../etc/passwd"', 'attachment', 'passwd'],
    ['attachment; filename=""', 'attachment', 'file'],
    ['form-data; name="f"; filename="x"', 'form-data', 'x'],
  ] as const) {
    test(`is read: ${value}`, () => {
      assert.deepEqual(parseRequestDisposition(value), { type, fileName });
    });
  }

  for (const value of [
    '',
    '; filename=a',
    '"attachment"',
    'attachment filename=a',
    'attachment; filename=my file.txt',
    'attachment; filename="a',
    'attachment; filename = a',
    'attachment; filename=a; filename=b',
  ]) {
    test(`is malformed: ${value}`, () => assert.equal(parseRequestDisposition(value), undefined));
  }
});
