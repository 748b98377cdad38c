/** A real browser from npm for one test file: Chromium as @sparticuz/chromium packs it, driven by Playwright. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Browser, chromium } from 'playwright-core';
import { repositoryRoot } from '../../harness/running-server.ts';

/** Offline and without a sandbox of its own: it runs as whoever runs the tests, also as root in a container. */
const flags = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

const unpacked = join(repositoryRoot, 'node_modules/.cache/browser');

export async function openBrowser(): Promise<Browser> {
  // Makes the package unpack NSS and what else Chromium links to: a fresh machine may have none of it.
  process.env.VERCEL = '1';
  unpackOnce();
  const { TMPDIR } = process.env;
  // The package looks for what it has unpacked among temporary files.
  process.env.TMPDIR = unpacked;
  const { default: packed } = await import('@sparticuz/chromium');
  const executablePath = await packed.executablePath();
  if (TMPDIR === undefined) delete process.env.TMPDIR;
  else process.env.TMPDIR = TMPDIR;
  return chromium.launch({ executablePath, headless: true, args: flags });
}

/** The package writes each file where others find it half written, and test files run beside each other: what is renamed is whole. */
function unpackOnce(): void {
  if (existsSync(unpacked)) return;
  mkdirSync(dirname(unpacked), { recursive: true });
  const own = mkdtempSync(`${unpacked}-`);
  const program = `await (await import('@sparticuz/chromium')).default.executablePath()`;
  const env = { ...process.env, TMPDIR: own };
  execFileSync(process.execPath, ['--input-type=module', '--eval', program], { cwd: repositoryRoot, env });
  writeFileSync(join(own, 'fonts/fonts.conf'), fontsConfiguration(unpacked));
  try {
    renameSync(own, unpacked);
  } catch (error) {
    rmSync(own, { recursive: true });
    // Another process was first.
    if (!existsSync(unpacked)) throw error;
  }
}

/** That of the package names folders of its own hosts and of /tmp; without a font no text is visible, and tests that read it fail. */
function fontsConfiguration(folder: string): string {
  const path = folder.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  return `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>${path}/fonts</dir>
  <cachedir>${path}/fonts-cache</cachedir>
</fontconfig>
`;
}
