import assert from 'node:assert/strict';
import test from 'node:test';
import fc from 'fast-check';
import { emailCharactersMax, normalizeEmail } from '../../../src/mail/email.ts';

const same: readonly (readonly [typed: string, written: string])[] = [
  ['Ada@Shop.Example', 'ada@shop.example'],
  ['  ada@shop.example\t', 'ada@shop.example'],
  ['ａｄａ＠ｓｈｏｐ．example', 'ada@shop.example'],
  ['ada+news@shop.example', 'ada+news@shop.example'],
  ['a.d.a@shop.example', 'a.d.a@shop.example'],
  ["o'neill@shop.example", "o'neill@shop.example"],
  ['ada@localhost', 'ada@localhost'],
  ['ÉLAN@shop.example', 'élan@shop.example'],
  ['e\u0301lan@shop.example', 'élan@shop.example'],
  ['ada@Bücher.example', 'ada@xn--bcher-kva.example'],
  ['ada@xn--bcher-kva.example', 'ada@xn--bcher-kva.example'],
  // KELVIN SIGN is a K to NFKC: one mailbox, one account.
  ['\u212Ael@shop.example', 'kel@shop.example'],
];

for (const [typed, written] of same) {
  test(`writes ${JSON.stringify(typed)} as ${written}`, () => {
    assert.equal(normalizeEmail(typed), written);
  });
}

const refused: readonly (readonly [what: string, typed: string])[] = [
  ['nothing', ''],
  ['no @', 'shop.example'],
  ['two @', 'ada@shop@example'],
  ['no name', '@shop.example'],
  ['no host', 'ada@'],
  ['a space', 'a da@shop.example'],
  ['a no-break space', 'a\u00a0da@shop.example'],
  ['an invisible character', 'ada\u200b@shop.example'],
  ['a change of writing direction', 'ada\u202e@shop.example'],
  ['NUL', 'ada\0@shop.example'],
  ['a line break and a header', 'ada@shop.example\r\nBcc: eve@shop.example'],
  ['a line break in the name', 'ada\r\n@shop.example'],
  ['half of a surrogate pair', 'ada\ud83d@shop.example'],
  ['a list', 'ada@shop.example,eve@shop.example'],
  ['a display name', 'Ada <ada@shop.example>'],
  ['a quoted name', '"ada"@shop.example'],
  ['a comment', 'ada(x)@shop.example'],
  ['a dot at the beginning', '.ada@shop.example'],
  ['two dots', 'a..da@shop.example'],
  ['a dot at the end', 'ada.@shop.example'],
  ['a root dot', 'ada@shop.example.'],
  ['an empty label', 'ada@shop..example'],
  ['a hyphen at the edge', 'ada@-shop.example'],
  ['an underscore in the host', 'ada@shop_.example'],
  ['an address literal', 'ada@[192.0.2.1]'],
  ['an address without brackets', 'ada@192.0.2.1'],
  ['a port', 'ada@shop.example:25'],
  ['a path', 'ada@shop.example/x'],
  ['an escape', 'ada@%73hop.example'],
  ['a long label', `ada@${'x'.repeat(64)}.example`],
  ['a long name', `${'x'.repeat(65)}@shop.example`],
];

for (const [what, typed] of refused) {
  test(`takes no address with ${what}`, () => {
    assert.equal(normalizeEmail(typed), undefined);
  });
}

test('takes an address of the greatest length and none longer', () => {
  const label = 'x'.repeat(61);
  const host = `${label}.${label}.${label}.example`;
  const longest = `${'y'.repeat(emailCharactersMax - host.length - 1 - 10)}@${'z'.repeat(9)}.${host}`;
  assert.equal(longest.length, emailCharactersMax);
  assert.equal(normalizeEmail(longest), longest);
  assert.equal(normalizeEmail(`y${longest}`), undefined);
});

test('gives up on a text of any length at once', () => {
  assert.equal(normalizeEmail(`${'a.'.repeat(1_000_000)}@shop.example`), undefined);
});

test('writes an address that it has written in the same way again', () => {
  const part = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 });
  fc.assert(
    fc.property(part, part, (name, host) => {
      const written = normalizeEmail(`${name}@${host}`);
      assert.equal(written === undefined ? undefined : normalizeEmail(written), written);
    }),
    { numRuns: 5000 },
  );
});
