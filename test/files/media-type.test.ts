import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createTypeJudge, type FileContent, headBytesMax } from '../../src/files/media-type.ts';
import { fileKinds, zip } from './file-kinds.ts';

const judgeType = createTypeJudge();

const utf8 = (text: string): Buffer => Buffer.from(text, 'utf8');
const kinds = await fileKinds();

function judge(content: Uint8Array, rest: Omit<FileContent, 'head' | 'bytes'> = {}) {
  return judgeType({ head: content.subarray(0, headBytesMax), bytes: content.length, ...rest });
}

function contentOf(name: string): Uint8Array {
  const kind = kinds.find((each) => each.name === name);
  assert.ok(kind, name);
  return kind.content;
}

describe('the type of a file that states none', () => {
  for (const { title, content, name, type, charset } of kinds) {
    test(`is ${type}: ${title}`, async () => {
      const judged = { ok: true, type, ...(charset === undefined ? {} : { charset }) };
      assert.deepEqual(await judge(content, { name }), judged);
      assert.deepEqual(await judge(content, { name, stated: 'application/octet-stream' }), judged);
      assert.deepEqual(
        await judge(content, { stated: type, types: [type] }),
        judged,
        'the same where it is stated',
      );
    });
  }

  test('is told for at least 60 kinds', () => {
    assert.ok(new Set(kinds.map(({ type }) => type)).size >= 60);
  });
});

describe('the stated type', () => {
  const png = contentOf('photo.png');
  const zipped = zip({ 'a.txt': 'a' });
  for (const [title, stated, content, type, charset] of [
    ['stays where any text may have it', 'text/csv', utf8('a,b\n'), 'text/csv', 'utf-8'],
    ['stays for text of an application', 'application/sql', utf8('SELECT 1'), 'application/sql'],
    [
      'stays for a text that a browser would take for HTML',
      'text/plain',
      utf8('<b>x</b>'),
      'text/plain',
      'utf-8',
    ],
    [
      'keeps its charset',
      'text/plain; charset=Windows-1252',
      Buffer.from('\xe9', 'latin1'),
      'text/plain',
      'windows-1252',
    ],
    [
      'loses a charset that the text is not in',
      'text/plain; charset=iso-8859-1',
      utf8('é'),
      'text/plain',
      'utf-8',
    ],
    [
      'loses a charset that browsers do not have',
      'text/plain; charset=utf-7',
      utf8('+ADw-'),
      'text/plain',
      'utf-8',
    ],
    ['loses a charset that is wider', 'text/plain; charset=utf-16', utf8('a'), 'text/plain', 'utf-8'],
    ['stays for a format within ZIP', 'application/vnd.sketch', zipped, 'application/vnd.sketch'],
    [
      'stays for an office document that does not begin with its types',
      'application/vnd.oasis.opendocument.text',
      zipped,
      'application/vnd.oasis.opendocument.text',
    ],
    [
      'stays for a document that is a ZIP archive too',
      'application/zip',
      contentOf('a.docx'),
      'application/zip',
    ],
    [
      'stays for a format within JSON',
      'application/geo+json; charset=utf-8',
      utf8('{}'),
      'application/geo+json',
    ],
    [
      'stays for a format within XML',
      'application/rss+xml',
      utf8('<?xml version="1.0"?><rss/>'),
      'application/rss+xml',
    ],
    [
      'stays for a sound in a file of films',
      'audio/mp4; codecs="mp4a.40.2"',
      contentOf('a.mp4'),
      'audio/mp4',
    ],
    ['stays for a sound in WebM', 'audio/webm;codecs=opus', contentOf('a.webm'), 'audio/webm'],
    ['stays for a raw photo', 'image/x-adobe-dng', contentOf('photo.tif'), 'image/x-adobe-dng'],
    ['stays for octets that nothing tells', 'application/x-own', Buffer.from([0, 1, 2]), 'application/x-own'],
    [
      'stays where a short signature agrees',
      'application/x-apple-diskimage',
      Buffer.from('7801aa00', 'hex'),
      'application/x-apple-diskimage',
    ],
    ['is written as registered', 'image/jpg', contentOf('photo.jpg'), 'image/jpeg'],
    [
      'is written as registered, as Windows sends it',
      'application/x-zip-compressed',
      zipped,
      'application/zip',
    ],
    ['goes for a photo of another format', 'image/png', contentOf('photo.jpg'), 'image/jpeg'],
    ['goes for HTML', 'image/png', utf8('<html>'), 'text/html'],
    ['goes for HTML with octets that no text has', 'image/png', utf8('<html>\0'), 'text/html'],
    ['goes for SVG', 'image/png', utf8('<svg/>'), 'image/svg+xml'],
    ['goes for a program', 'image/png', contentOf('a.exe'), 'application/vnd.microsoft.portable-executable'],
    ['goes for octets that are no text', 'text/plain', Buffer.from([0, 1, 2]), 'application/octet-stream'],
    [
      'goes for octets that are no JSON',
      'application/json',
      Buffer.from([0, 1, 2]),
      'application/octet-stream',
    ],
    ['goes for octets that are no picture', 'image/png', Buffer.from([0, 1, 2]), 'application/octet-stream'],
    ['goes for a text that is no picture', 'image/svg+xml', utf8('a'), 'text/plain', 'utf-8'],
    ['goes where it is malformed', 'png', png, 'image/png'],
    ['goes where it is a range', 'image/*', png, 'image/png'],
    ['goes where it is too long', `image/${'x'.repeat(128)}`, png, 'image/png'],
    ['goes where curl did not know better', 'application/x-www-form-urlencoded', png, 'image/png'],
  ] as const) {
    test(title, async () => {
      const judged = { ok: true, type, ...(charset === undefined ? {} : { charset }) };
      assert.deepEqual(await judge(content, { stated }), judged);
    });
  }

  test('of exactly 127 characters in each name stays', async () => {
    const stated = `${'a'.repeat(127)}/${'b'.repeat(127)}`;
    assert.deepEqual(await judge(Buffer.from([0, 1]), { stated }), { ok: true, type: stated });
  });

  test('of a table on Windows with Excel is CSV', async () => {
    const judged = await judge(utf8('a;b\n'), {
      stated: 'application/vnd.ms-excel',
      name: 'table.csv',
      types: ['text/csv'],
    });
    assert.deepEqual(judged, { ok: true, type: 'text/csv', charset: 'utf-8' });
  });
});

describe('declared types', () => {
  const types = ['image/*', 'application/pdf'];
  const told = 'must be of the type image/* or application/pdf';
  for (const [title, content, rest, outcome] of [
    ['take what they name', contentOf('photo.jpg'), { stated: 'image/jpeg' }, 'image/jpeg'],
    [
      'take a photo of another format than stated',
      contentOf('photo.jpg'),
      { stated: 'image/png' },
      'image/jpeg',
    ],
    ['take what states nothing', contentOf('a.pdf'), {}, 'application/pdf'],
    [
      'take a picture of a format that octets do not tell',
      Buffer.from([0, 9]),
      { stated: 'image/x-tga' },
      'image/x-tga',
    ],
    ['take an SVG that says so', contentOf('a.svg'), { stated: 'image/svg+xml' }, 'image/svg+xml'],
    [
      'refuse an SVG stated as PNG',
      contentOf('a.svg'),
      { stated: 'image/png' },
      `${told}: its content is image/svg+xml, and stated to be image/png`,
    ],
    [
      'refuse HTML stated as PNG',
      utf8('<html>'),
      { stated: 'image/png' },
      `${told}: its content is text/html, and stated to be image/png`,
    ],
    [
      'refuse another type that is stated',
      contentOf('photo.jpg'),
      { stated: 'text/plain' },
      `${told}, not text/plain`,
    ],
    ['refuse what is found', contentOf('a.zip'), {}, `${told}: its content is application/zip`],
    [
      'refuse octets that are no picture',
      Buffer.from([0, 9]),
      { stated: 'image/png' },
      `${told}: its content is of no known type, and stated to be image/png`,
    ],
    [
      'refuse an empty picture',
      Buffer.alloc(0),
      { stated: 'image/png' },
      `${told}: it is empty, and stated to be image/png`,
    ],
  ] as const) {
    test(title, async () => {
      const judged = await judge(content, { ...rest, types });
      assert.equal(judged.ok ? judged.type : judged.message, outcome);
    });
  }

  test('mean the same by any name of a type', async () => {
    for (const [type, content] of [
      ['image/jpg', contentOf('photo.jpg')],
      ['text/xml', contentOf('a.xml')],
    ] as const) {
      assert.equal((await judge(content, { types: [type] })).ok, true, type);
    }
    assert.equal((await judge(Buffer.from([0]), { types: ['*/*'] })).ok, true);
  });
});
