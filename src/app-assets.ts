/**
 * The web apps as resources: the dashboard, the consumers' portal, and their scripts and styles, which scripts/bundle.ts makes from dashboard/.
 * A page loads nothing from another host and runs no inline script; its links are relative, so that a proxy may add a prefix.
 */
import { hash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { portalPath } from './accounts/portal/portal-routes.ts';
import type { Configuration } from './config/configuration.ts';
import { packageRoot } from './package-version.ts';
import type { Asset } from './resources/program/program-routes.ts';

/** @param frameAncestors the origins whose pages may frame the page */
function policyOf(frameAncestors: readonly string[]): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "media-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    `frame-ancestors ${frameAncestors.length === 0 ? "'none'" : frameAncestors.join(' ')}`,
  ].join('; ');
}

const immutable = 'public, max-age=31536000, immutable';

/** A page with its script and style, from a folder of the bundle. */
type App = {
  readonly path: string;
  readonly folder: readonly string[];
  /** Quoted for HTML. */
  readonly title: string;
  readonly noun: string;
  /** Further lines of its head, each with its line feed. */
  readonly head?: string;
  /** The origins whose pages may frame it. */
  readonly frameAncestors: readonly string[];
};

export function dashboardAssets(): readonly Asset[] {
  const path = '/dashboard';
  return appAssets({ path, folder: [], title: 'Dashboard', noun: 'dashboard', frameAncestors: [] });
}

/** The consumers' portal (§5.10). A `meta` element gives the page its name and colour, because its policy permits no inline script or style. */
export function portalAssets({ portal, title, base }: Configuration): readonly Asset[] {
  const name = portal.name ?? title;
  const settings = JSON.stringify({ name, color: portal.color ?? null, base });
  return appAssets({
    ...{ path: portalPath, folder: ['portal'], noun: 'portal', frameAncestors: portal.frameAncestors },
    title: `${escaped(name)} – Webhooks`,
    head: `<meta name="portal" content="${escaped(settings)}">\n`,
  });
}

/** Empty if the program was not bundled: sources that are imported without a set-up have no pages. */
function appAssets(app: App): readonly Asset[] {
  const folder = join(packageRoot(), 'dist', 'dashboard', ...app.folder);
  if (!existsSync(folder)) return [];
  const script = fileAsset(folder, 'main.js', 'text/javascript; charset=utf-8', app.path);
  const style = fileAsset(folder, 'style.css', 'text/css; charset=utf-8', app.path);
  const policy = policyOf(app.frameAncestors);
  return [
    {
      path: app.path,
      mediaType: 'text/html; charset=utf-8',
      cacheControl: 'no-cache',
      fields: ['Content-Security-Policy', policy, 'Referrer-Policy', 'no-referrer'],
      read: () => page(app, script.path.slice(1), style.path.slice(1)),
    },
    script,
    style,
  ];
}

/** The name contains a digest of the content, so caches may keep the file for ever (RFC 8246). */
function fileAsset(folder: string, name: string, mediaType: string, below: string): Asset {
  const content = readFileSync(join(folder, name));
  const digest = hash('sha256', content, 'base64url').slice(0, 8);
  return {
    path: `${below}/assets/${digest}-${name}`,
    mediaType,
    cacheControl: immutable,
    fields: [],
    read: () => content,
  };
}

function page({ title, noun, head = '' }: App, script: string, style: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
${head}<title>${title}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${style}">
<script type="module" src="${script}"></script>
</head>
<body>
<div id="app"><noscript>The ${noun} needs JavaScript.</noscript></div>
</body>
</html>
`;
}

/** For the content of an element and for a quoted attribute (WHATWG HTML §13.3). */
function escaped(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('"', '&quot;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;');
}
