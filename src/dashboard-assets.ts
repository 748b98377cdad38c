/**
 * The files of the dashboard as resources: the page at `/dashboard`, and its script and style, which scripts/bundle.ts makes from dashboard/.
 * The page loads nothing from another host and runs no inline script; its links are relative, so that a proxy may add a prefix.
 */
import { hash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from './package-version.ts';
import type { Asset } from './resources/program/program-routes.ts';

/** @param frameAncestors the origins whose pages may frame the page */
export function policyOf(frameAncestors: readonly string[]): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    `frame-ancestors ${frameAncestors.length === 0 ? "'none'" : frameAncestors.join(' ')}`,
  ].join('; ');
}

const immutable = 'public, max-age=31536000, immutable';
export const noSniffing = ['X-Content-Type-Options', 'nosniff'];

const path = '/dashboard';

/** Empty if the program was not bundled: sources that are imported without a set-up have no dashboard. */
export function dashboardAssets(): readonly Asset[] {
  const folder = join(packageRoot(), 'dist', 'dashboard');
  if (!existsSync(folder)) return [];
  const script = fileAsset(folder, 'main.js', 'text/javascript; charset=utf-8', path);
  const style = fileAsset(folder, 'style.css', 'text/css; charset=utf-8', path);
  return [
    {
      path,
      mediaType: 'text/html; charset=utf-8',
      cacheControl: 'no-cache',
      fields: ['Content-Security-Policy', policyOf([]), 'Referrer-Policy', 'no-referrer', ...noSniffing],
      read: () => page(script.path.slice(1), style.path.slice(1)),
    },
    script,
    style,
  ];
}

/** The name contains a digest of the content, so caches may keep the file for ever (RFC 8246). */
export function fileAsset(folder: string, name: string, mediaType: string, below: string): Asset {
  const content = readFileSync(join(folder, name));
  const digest = hash('sha256', content, 'base64url').slice(0, 8);
  return {
    path: `${below}/assets/${digest}-${name}`,
    mediaType,
    cacheControl: immutable,
    fields: noSniffing,
    read: () => content,
  };
}

function page(script: string, style: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Dashboard</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${style}">
<script type="module" src="${script}"></script>
</head>
<body>
<div id="app"><noscript>The dashboard needs JavaScript.</noscript></div>
</body>
</html>
`;
}
