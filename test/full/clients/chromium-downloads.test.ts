/** Chromium as a client of files: a medium that seeks, and the names under which files are saved (§4.2.7). */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { formatContentDisposition } from '../../../src/http/syntax/content-disposition.ts';
import type { Operation, Representation, Resource } from '../../../src/kernel/resource.ts';
import { openEmbedded } from '../../harness/stores.ts';
import { roomOf, type Served, serve, surround } from '../../harness/walked-resources.ts';
import { openBrowser } from '../browser/chromium.ts';

const seconds = 120;
const samplesPerSecond = 44_100;
const modifiedAt = Date.UTC(2026, 7, 1);
const store = await openEmbedded();
/** Method, path and Range of each request. */
const seen: string[] = [];
let served: Served;
let browser: Browser;

/** Silence as WAV: 8 bits, one channel. */
function wave(): Buffer {
  const samples = seconds * samplesPerSecond;
  const head = Buffer.alloc(44);
  head.write('RIFF', 0);
  head.writeUInt32LE(36 + samples, 4);
  head.write('WAVEfmt ', 8);
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(samplesPerSecond, 24);
  head.writeUInt32LE(samplesPerSecond, 28);
  head.writeUInt16LE(1, 32);
  head.writeUInt16LE(8, 34);
  head.write('data', 36);
  head.writeUInt32LE(samples, 40);
  return Buffer.concat([head, Buffer.alloc(samples, 128)]);
}

function resourceAt(
  path: string,
  content: Buffer,
  mediaType: string,
  fields: readonly string[] = [],
): Resource {
  const validators = { tag: 'v1', modifiedAt, cacheControl: 'private, no-cache' };
  const represent = (): Representation => ({
    content: {
      bytes: content.length,
      read: async (first, end) =>
        (async function* () {
          for (let at = first; at < end; at += 65_536) yield content.subarray(at, Math.min(at + 65_536, end));
        })(),
    },
    ...{ mediaType, validators, fields, cacheControl: validators.cacheControl },
  });
  const operation: Operation = {
    permission: () => 'granted',
    ranges: true,
    standing: () => ({ exists: true, visible: true, permitted: true }),
    validators: () => validators,
    represent({ request }) {
      seen.push(`${request.method} ${request.target} ${request.fields.range ?? 'whole'}`);
      return represent();
    },
  };
  return {
    pattern: path,
    operations: new Map([['GET', operation]]),
    constantFields: [],
    offers: ['*/*'],
  };
}

const names = [
  'plain.txt',
  'ä 日本 🦊.txt',
  '100%20sure.txt',
  '=?UTF-8?Q?word?=.txt',
  'say "hi".txt',
  "it's (1).txt",
];
const page = `<!doctype html><audio id="a" preload="metadata" src="/sound"></audio>
${names.map((_, at) => `<a id="n${at}" href="/named${at}">x</a>`).join('\n')}`;

before(async () => {
  const named = names.map((name, at) =>
    resourceAt(`/named${at}`, Buffer.from('x'), 'text/plain', [
      'Content-Disposition',
      formatContentDisposition('attachment', name),
    ]),
  );
  served = await serve(
    roomOf(surround(store), [
      resourceAt('/page', Buffer.from(page), 'text/html'),
      resourceAt('/sound', wave(), 'audio/wav'),
      ...named,
    ]),
  );
  browser = await openBrowser();
});

after(async () => {
  await browser?.close();
  await served?.stop();
});

async function withPage(use: (page: Page) => Promise<void>): Promise<void> {
  const context = await browser.newContext({ acceptDownloads: true });
  const opened = await context.newPage();
  try {
    await opened.goto(`http://127.0.0.1:${served.port}/page`);
    await use(opened);
  } finally {
    await context.close();
  }
}

test('seeks in a medium by ranges, and comes to the place', () =>
  withPage(async (opened) => {
    await opened.waitForFunction('document.getElementById("a").readyState >= 1');
    assert.equal(await opened.evaluate('document.getElementById("a").duration'), seconds);
    await opened.evaluate(`new Promise((resolve) => {
      const audio = document.getElementById('a');
      audio.onseeked = resolve;
      audio.currentTime = 110;
    })`);
    assert.equal(await opened.evaluate('document.getElementById("a").currentTime'), 110);
    assert.ok(seen.includes('GET /sound bytes=0-'), seen.join('\n'));
    const later = seen.filter((each) => /GET \/sound bytes=[1-9]/.test(each));
    assert.ok(later.length > 0, seen.join('\n'));
  }));

for (const [at, name] of names.entries()) {
  test(`saves a file under the name ${name}`, () =>
    withPage(async (opened) => {
      const [download] = await Promise.all([opened.waitForEvent('download'), opened.click(`#n${at}`)]);
      // Chromium replaces what file systems do not take.
      assert.equal(download.suggestedFilename(), name.replaceAll('"', '_').replaceAll('?', '_'));
    }));
}
