/** A real browser from npm for one test file: Chromium as @sparticuz/chromium packs it, driven by Playwright. */
import { type Browser, chromium } from 'playwright-core';

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

export async function openBrowser(): Promise<Browser> {
  // Makes the package unpack NSS and what else Chromium links to: a fresh machine may have none of it.
  process.env.VERCEL = '1';
  const { default: packed } = await import('@sparticuz/chromium');
  return chromium.launch({ executablePath: await packed.executablePath(), headless: true, args: flags });
}
