/**
 * The files of the consumers' portal (§5.10) as resources: the page at `/portal`, and its script and style, which scripts/bundle.ts makes
 * from dashboard/portal. The page is told its name and colour by a `meta` element, because its policy permits no inline script or style.
 * Only pages of the configured origins may frame it.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { portalPath } from './accounts/portal/link-routes.ts';
import type { Configuration } from './config/configuration.ts';
import { fileAsset, noSniffing, policyOf } from './dashboard-assets.ts';
import { packageRoot } from './package-version.ts';
import type { Asset } from './resources/program/program-routes.ts';

/** Empty if the program was not bundled, as the dashboard's. */
export function portalAssets({ portal, title, base }: Configuration): readonly Asset[] {
  const folder = join(packageRoot(), 'dist', 'dashboard', 'portal');
  if (!existsSync(folder)) return [];
  const script = fileAsset(folder, 'main.js', 'text/javascript; charset=utf-8', portalPath);
  const style = fileAsset(folder, 'style.css', 'text/css; charset=utf-8', portalPath);
  const name = portal.name ?? title;
  const settings = JSON.stringify({ name, color: portal.color ?? null, base });
  const policy = policyOf(portal.frameAncestors);
  return [
    {
      path: portalPath,
      mediaType: 'text/html; charset=utf-8',
      cacheControl: 'no-cache',
      fields: ['Content-Security-Policy', policy, 'Referrer-Policy', 'no-referrer', ...noSniffing],
      read: () => page(name, settings, script.path.slice(1), style.path.slice(1)),
    },
    script,
    style,
  ];
}

function page(name: string, settings: string, script: string, style: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="portal" content="${escaped(settings)}">
<title>${escaped(name)} – Webhooks</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${style}">
<script type="module" src="${script}"></script>
</head>
<body>
<div id="app"><noscript>The portal needs JavaScript.</noscript></div>
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
