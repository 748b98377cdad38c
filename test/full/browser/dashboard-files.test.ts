/** Files in the dashboard in a real browser: chosen and dropped, shown, played, saved, replaced and removed. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Browser, BrowserContext, Locator, Page } from 'playwright-core';
import { type RunningServer, startServer } from '../../harness/running-server.ts';
import { until } from '../../harness/until.ts';
import { openBrowser } from './chromium.ts';
import { enterDashboard, openWindow, violationsOn } from './dashboard-window.ts';

const albums = '/api/v1/albums';

let program: RunningServer;
let browser: Browser;
let context: BrowserContext;
let page: Page;
let complaints: readonly string[];
let id: string;

before(async () => {
  const config = fileURLToPath(new URL('./fixtures/album.config.ts', import.meta.url));
  program = await startServer({ config });
  browser = await openBrowser();
});

after(async () => {
  await browser?.close();
  await program?.stop();
});

beforeEach(async (t) => {
  context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  ({ page, complaints } = await openWindow(context, program.url));
  if ('after' in t) t.after(() => context.close());
  id = (await program.send('POST', albums, { json: { title: 'Summer' }, expect: 201 })).json().id;
  await enterDashboard(page, program.url, `#/member?path=${albums}&id=${id}`);
  await page.getByRole('heading', { name: 'Summer' }).waitFor();
});

const stored = async () => (await program.send('GET', `${albums}/${id}`)).json();
const textFile = (name: string, text: string) => ({
  name,
  mimeType: 'text/plain',
  buffer: Buffer.from(text),
});

/** A square in one colour, by the canvas of the browser. */
async function picture(colour: string, size = 40): Promise<Buffer> {
  const url = await page.evaluate(`(() => {
    const canvas = Object.assign(document.createElement('canvas'), { width: ${size}, height: ${size} });
    const context = canvas.getContext('2d');
    context.fillStyle = ${JSON.stringify(colour)};
    context.fillRect(0, 0, ${size}, ${size});
    return canvas.toDataURL('image/png');
  })()`);
  return Buffer.from(String(url).split(',')[1] ?? '', 'base64');
}

/** A second of silence. */
function silence(): Buffer {
  const samples = Buffer.alloc(8000, 128);
  const head = Buffer.alloc(44);
  head.write('RIFF', 0);
  head.writeUInt32LE(36 + samples.length, 4);
  head.write('WAVEfmt ', 8);
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(8000, 24);
  head.writeUInt32LE(8000, 28);
  head.writeUInt16LE(1, 32);
  head.writeUInt16LE(8, 34);
  head.write('data', 36);
  head.writeUInt32LE(samples.length, 40);
  return Buffer.concat([head, samples]);
}

/** Drops files on the place of a member. */
async function drop(member: string, files: readonly { name: string; text: string }[]): Promise<void> {
  const dropped = await page.evaluateHandle(`(() => {
    const transfer = new DataTransfer();
    for (const { name, text } of ${JSON.stringify(files)}) transfer.items.add(new File([text], name));
    return transfer;
  })()`);
  const place = page.locator('.drop').filter({ has: page.getByLabel(member) });
  await place.dispatchEvent('dragover', { dataTransfer: dropped });
  await place.dispatchEvent('drop', { dataTransfer: dropped });
}

test('shows an image that is chosen, replaces it, and removes it', async () => {
  const choose = (label: string, buffer: Buffer) =>
    page.getByLabel(label).setInputFiles({ name: 'cover.png', mimeType: 'image/png', buffer });
  await choose('Add a file of cover', await picture('teal'));
  const image = page.getByRole('img', { name: 'cover.png' });
  await image.waitFor();
  assert.equal(await widthOf(image), 40);
  assert.deepEqual(await violationsOn(page), []);
  const { cover } = await stored();
  await choose('Replace the file of cover', await picture('orange'));
  await until(async () => (await stored()).cover.id !== cover.id);
  await page.locator('progress').waitFor({ state: 'detached' });
  await page.getByLabel('Replace the file of cover').setInputFiles(textFile('x.txt', 'no image'));
  await page.getByRole('alert').filter({ hasText: '415' }).waitFor();
  await page.getByRole('button', { name: 'Remove…' }).click();
  await page.getByRole('button', { name: 'Remove', exact: true }).click();
  await page.getByLabel('Add a file of cover').waitFor();
  assert.equal((await stored()).cover, undefined);
  assert.deepEqual(complaints, []);
});

test('shows the preview of an image, in the list too, and the original when it is opened', async () => {
  const asked: string[] = [];
  page.on('request', (request) => void asked.push(new URL(request.url()).pathname));
  const buffer = await picture('crimson', 400);
  await page.getByLabel('Add a file of poster').setInputFiles({
    ...{ name: 'poster.png', mimeType: 'image/png', buffer },
  });
  const opener = page.getByRole('button', { name: 'Open poster.png' });
  await opener.locator('img').waitFor();
  assert.equal(await widthOf(opener.locator('img')), 96);
  const isOriginal = (path: string) => path.includes('/links/') || path.endsWith('/poster/link');
  assert.deepEqual(asked.filter(isOriginal), []);
  assert.deepEqual(await violationsOn(page), []);
  await photograph('member');
  await opener.click();
  const image = page.getByRole('img', { name: 'poster.png' });
  await image.waitFor();
  await until(async () => (await widthOf(image)) === 400);
  await page.evaluate(`location.hash = '#/list?path=${albums}&columns=title,poster'`);
  const cell = page.getByRole('gridcell', { name: 'poster.png' });
  await cell.locator('img').waitFor();
  assert.equal(await widthOf(cell.locator('img')), 96);
  assert.deepEqual(await violationsOn(page), []);
  await photograph('list');
  assert.deepEqual(complaints, []);
});

/** Pictures of a page for people, at the widths and in the colours of readers, where they are asked for. */
async function photograph(name: string): Promise<void> {
  const folder = process.env.COMITY_TEST_PICTURE;
  if (folder === undefined) return;
  for (const width of [1440, 390])
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.setViewportSize({ width, height: 900 });
      await page.emulateMedia({ colorScheme });
      await page.screenshot({ path: `${folder}-${name}-${width}-${colorScheme}.png`, fullPage: true });
    }
}

function widthOf(image: Locator): Promise<number> {
  return image.evaluate((each) => (each as unknown as { naturalWidth: number }).naturalWidth);
}

test('plays a sound, and seeks in it', async () => {
  await page.getByLabel('Add a file of sound').setInputFiles({
    name: 'silence.wav',
    mimeType: 'audio/wav',
    buffer: silence(),
  });
  const audio = page.locator('audio');
  await audio.waitFor();
  await audio.evaluate((each) => {
    const sound = each as unknown as {
      readyState: number;
      currentTime: number;
      onloadedmetadata: () => void;
    };
    const seek = () => {
      sound.currentTime = 0.5;
    };
    if (sound.readyState > 0) seek();
    else sound.onloadedmetadata = seek;
  });
  const at = () => audio.evaluate((each) => (each as unknown as { currentTime: number }).currentTime);
  await until(async () => (await at()) === 0.5);
  assert.deepEqual(complaints, []);
});

test('takes several files that are dropped, saves one, and tells what is refused', async () => {
  await drop('Add files of papers', [
    { name: 'a.txt', text: 'first' },
    { name: 'b.txt', text: 'second' },
  ]);
  await page.getByRole('button', { name: 'Download b.txt' }).waitFor();
  const saving = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Download b.txt' }).click();
  const saved = await saving;
  assert.equal(saved.suggestedFilename(), 'b.txt');
  assert.deepEqual(await violationsOn(page), []);
  await photograph('files');
  await drop('Add files of papers', [
    { name: 'c.txt', text: 'third' },
    { name: 'd.txt', text: 'fourth' },
  ]);
  await page.getByRole('alert').filter({ hasText: '422' }).waitFor();
  const { papers } = await stored();
  assert.deepEqual(
    papers.map(({ name }: { name: string }) => name),
    ['a.txt', 'b.txt', 'c.txt'],
  );
  await page.evaluate(`location.hash = '#/list?path=${albums}&columns=title,papers'`);
  await page.getByRole('gridcell', { name: 'a.txt, b.txt, c.txt' }).waitFor();
  assert.deepEqual(complaints, []);
});
