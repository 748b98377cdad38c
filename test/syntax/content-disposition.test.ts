import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatContentDisposition } from '../../src/http/syntax/content-disposition.ts';

for (const [name, expected] of [
  ['report.pdf', 'attachment; filename="report.pdf"'],
  ['', 'attachment'],
  ['a b;c,d=e.txt', 'attachment; filename="a b;c,d=e.txt"'],
  ['ä.png', `attachment; filename="_.png"; filename*=UTF-8''%C3%A4.png`],
  ['日本 🦊.txt', `attachment; filename="__ _.txt"; filename*=UTF-8''%E6%97%A5%E6%9C%AC%20%F0%9F%A6%8A.txt`],
  ['say "hi".txt', `attachment; filename="say _hi_.txt"; filename*=UTF-8''say%20%22hi%22.txt`],
  ['100%20sure.txt', `attachment; filename="100_20sure.txt"; filename*=UTF-8''100%2520sure.txt`],
  [
    '=?UTF-8?Q?x?=.txt',
    `attachment; filename="_?UTF-8?Q?x?=.txt"; filename*=UTF-8''%3D%3FUTF-8%3FQ%3Fx%3F%3D.txt`,
  ],
  ["é'()*.txt", `attachment; filename="_'()*.txt"; filename*=UTF-8''%C3%A9%27%28%29%2A.txt`],
  // No client would keep these, and some obey them.
  ['a\r\nSet-Cookie: x=y', 'attachment; filename="a__Set-Cookie: x=y"'],
  ['a\0b\x7f\x80c', 'attachment; filename="a_b__c"'],
  ['../../etc/passwd', 'attachment; filename=".._.._etc_passwd"'],
  ['C:\\boot.ini', 'attachment; filename="C:_boot.ini"'],
  ['photo\u202egpj.exe', 'attachment; filename="photo_gpj.exe"'],
  ['a\u2028b', 'attachment; filename="a_b"'],
  ['\ud800.txt', `attachment; filename="_.txt"; filename*=UTF-8''%EF%BF%BD.txt`],
] as const) {
  test(`writes ${JSON.stringify(name)} (RFC 6266, RFC 8187)`, () => {
    assert.equal(formatContentDisposition('attachment', name), expected);
  });
}

test('suggests a name for content that is shown too', () => {
  assert.equal(formatContentDisposition('inline', 'a.png'), 'inline; filename="a.png"');
});

test('writes printable ASCII with two quotes for any name', () => {
  for (let code = 0; code < 0x3000; code += 1) {
    const field = formatContentDisposition('attachment', `a${String.fromCodePoint(code)}b`);
    assert.match(field, /^attachment; filename="[\x20-\x7e]{3}"(?:; filename\*=UTF-8''[A-Za-z0-9%._~!-]+)?$/);
    assert.equal(field.split('"').length, 3);
    assert.ok(!field.slice(0, field.indexOf(';', 12)).includes('\\'));
  }
});
