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
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

const unpacked = join(repositoryRoot, 'node_modules/.cache/browser');

/** An origin that is asked over HTTP/3 from the first request on, and the digest of its certificate's public key, in base64. */
export type Http3Origin = { readonly origin: string; readonly keyDigest: string };

export async function openBrowser(http3?: Http3Origin): Promise<Browser> {
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
  const args =
    http3 === undefined
      ? [...flags, '--disable-quic']
      : [
          ...flags,
          `--origin-to-force-quic-on=${http3.origin}`,
          // Over QUIC, ignoreHTTPSErrors is not enough.
          `--ignore-certificate-errors-spki-list=${http3.keyDigest}`,
        ];
  return chromium.launch({ executablePath, headless: true, args });
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
