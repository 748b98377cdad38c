/** Values on which two stores would disagree if either compared, ordered, folded or wrote them in its own way. */

/** Case, accents composed and not, signs that LIKE and SQL know, digits as text, and both ends of what UTF-16 sorts unlike UTF-8. */
export const texts: readonly string[] = [
  ...['a', 'B', 'b', 'A', 'Z', 'z', 'aa', 'ab', 'a b', 'a-b', '_', '~', ' ', '', '  a', 'a '],
  ...['é', 'e\u0301', 'É', 'ß', 'ss', 'ẞ', 'İ', 'I', 'ı', 'ﬁ', 'fi', 'Ａ', 'Ω', 'Ω', 'ö', 'oe'],
  ...['\uffff', '\u{10000}', '\ue000', '\u{10ffff}', '😀', '👩‍👩‍👧', '\u200b', '\u00a0'],
  ...['a\nb', 'a\tb', 'a\\b', 'a"b', "a'b", "'; DROP TABLE samples; --", '$1', '?', ':name'],
  ...['%', '_x', '100%', 'a%b', 'a_b', '\\', 'a\\', '\\%', 'null', 'true', '10', '9', '1e3', '-0'],
  ...['עברית', '日本', '日', '\u0001', '\u007f'],
];

/** Written as JSON, since some have no other form that keeps them. */
export const numbers: readonly string[] = [
  ...['0', '-0', '1', '-1', '1.0', '1E2', '100', '0.1', '0.2', '0.30000000000000004', '0.3', '1.5', '-1.5'],
  ...['1e21', '1e20', '123456789012345680000', '9007199254740991', '9007199254740992', '9007199254740994'],
  ...['-9007199254740991', '5e-324', '-5e-324', '2.2250738585072014e-308', '1.7976931348623157e308'],
  ...['-1.7976931348623157e308', '1e-7', '0.000001', '4294967296', '2147483648', '-2147483649'],
];

export const integers: readonly string[] = [
  ...[
    '0',
    '-0',
    '1',
    '1.0',
    '1e3',
    '-1',
    '9007199254740991',
    '-9007199254740991',
    '2147483648',
    '4294967296',
  ],
];

export const times: readonly string[] = [
  '2026-01-31T12:00:00Z',
  '2026-01-31T12:00:00.5Z',
  '2026-01-31T12:00:00.500Z',
  '2026-01-31T11:59:59.999Z',
  '1970-01-01T00:00:00Z',
  '0001-01-01T00:00:00Z',
  '9999-12-31T23:59:59.999Z',
  '2024-02-29T00:00:00Z',
];

/** Members that nothing compares, and that must come back as they were sent. */
export const extras: readonly string[] = [
  'null',
  'true',
  '"text"',
  '12.50',
  '[]',
  '{}',
  '[null,[],{}]',
  '{"b":1,"a":2,"":3}',
  '{"a":{"b":[1,{"c":null}]}}',
  '{"constructor":{"prototype":null},"toString":1}',
  '{"$ref":"#/x","1":1,"0":0}',
  '"\\ud83d\\ude00"',
  '"\\/ \\b\\f\\n\\r\\t \\u2028"',
  '[0.1,1e21,-0,1234567890123456800]',
];

/** JSON that a store could choke on, or could lose something of. */
export const hardExtras: readonly string[] = [
  '"\\u0000"',
  '{"\\u0000":"a\\u0000b"}',
  '"\\ud800"',
  '{"\\udfff":1}',
  '{"__proto__":{"a":1}}',
  '[1e400]',
  '[123456789012345678901234567890]',
  '{"a":1,"a":2}',
];
