/**
 * The documentation pages: `/docs`, which shows the OpenAPI document in a viewer, `/docs/errors`, and their assets.
 * Every asset is served by this program; pages load no font, script or image from another host
 * (docs/decisions/0007-api-viewer.md).
 */

import { hash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { type ProblemCode, problems } from '../http/problem-registry.ts';
import type { Retry } from '../http/problems/problem-entry.ts';
import { bar, docsPage, docsScript, docsStyle, escapeHtml } from './docs-page.ts';
import { reasonPhrases } from './refusals.ts';

export type DocsAsset = {
  readonly path: string;
  readonly mediaType: string;
  readonly cacheControl: string;
  /** Name, value, name, value ... */
  readonly fields: readonly string[];
  readonly read: () => Promise<string | Uint8Array> | string | Uint8Array;
};

/** Names of assets contain a digest or a version, so caches may keep them for ever (RFC 8246). */
const immutable = 'public, max-age=31536000, immutable';
const pageCacheControl = 'no-cache';

/** A test compares it with the installed package. The asset's name contains it, so caches may keep it for ever. */
export const viewerVersion = '2.4.820';
/** The viewer's file in its package, and its copy in the bundle. */
export const viewerModule = 'openapi-explorer/dist/browser/openapi-explorer.min.js';
export const viewerCopy = './openapi-explorer.min.js';

/** The viewer writes style attributes, which only `unsafe-inline` allows; scripts come from files only. */
const viewerPolicy =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const plainPolicy =
  "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** @param title of the API, escaped */
export function docsAssets(title: string): readonly DocsAsset[] {
  const script = asset(
    `/docs/assets/docs-${digest(docsScript)}.js`,
    'text/javascript; charset=utf-8',
    () => docsScript,
  );
  const style = asset(
    `/docs/assets/docs-${digest(docsStyle)}.css`,
    'text/css; charset=utf-8',
    () => docsStyle,
  );
  const explorer = asset(
    `/docs/assets/openapi-explorer-${viewerVersion}.js`,
    'text/javascript; charset=utf-8',
    () => readFile(viewerFile()),
  );
  const paths = { script: script.path, style: style.path, viewer: explorer.path };
  return [
    page('/docs', viewerPolicy, docsPage(title, paths)),
    page('/docs/errors', plainPolicy, errorsPage(title, style.path)),
    script,
    style,
    explorer,
  ];
}

function page(path: string, policy: string, html: string): DocsAsset {
  return {
    path,
    mediaType: 'text/html; charset=utf-8',
    cacheControl: pageCacheControl,
    fields: ['Content-Security-Policy', policy, 'Referrer-Policy', 'no-referrer'],
    read: () => html,
  };
}

function asset(path: string, mediaType: string, read: DocsAsset['read']): DocsAsset {
  return { path, mediaType, cacheControl: immutable, fields: [], read };
}

/**
 * The bundle contains a copy of the viewer's file (scripts/bundle.ts), so that users of the package do not install the
 * 45 MB of the viewer's package; the sources read the file from that package.
 */
function viewerFile(): string {
  const copy = fileURLToPath(new URL(viewerCopy, import.meta.url));
  return existsSync(copy) ? copy : fileURLToPath(import.meta.resolve(viewerModule));
}

/** 48 bits of the content, enough to tell releases apart. */
function digest(text: string): string {
  return hash('sha256', text, 'base64url').slice(0, 8);
}

// The page at `/docs/errors`: each code has an anchor, to which `type` of a problem points (RFC 9457 §3.1.1).

const advice: Readonly<Record<Retry, string>> = {
  no: 'The same request gets the same response.',
  later: 'The same request may succeed later; wait for Retry-After if the response has it.',
  'after-reading': 'Read the resource again, then decide.',
  'with-credentials': 'Send a different credential.',
};

/** @param stylePath path of the stylesheet */
function errorsPage(title: string, stylePath: string): string {
  const byStatus = Map.groupBy(Object.keys(problems) as ProblemCode[], (code) => problems[code].status);
  const sections = [...byStatus]
    .sort(([one], [other]) => one - other)
    .map(
      ([status, codes]) =>
        `<section>\n<h2>${status} ${reasonPhrases[status] ?? ''}</h2>\n${codes.map(entry).join('\n')}\n</section>`,
    );
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Errors: ${escapeHtml(title)} API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${stylePath}">
</head>
<body>
${bar(title, 'errors')}
<main>
<h1>Errors</h1>
<p>Every error response has a JSON body with <code>error</code>, a message for people, and <code>code</code>, which is stable and for programs.
With <code>Accept: application/problem+json</code> it also has the members of RFC&nbsp;9457. If the content is invalid, <code>errors</code> points to each invalid member.</p>
${sections.join('\n')}
</main>
</body>
</html>
`;
}

function entry(code: ProblemCode): string {
  const { message, meaning, retry } = problems[code];
  return `<article id="${code}">
<h3><a href="#${code}"><code>${code}</code></a></h3>
<p>${escapeHtml(meaning)}</p>
<p class="quiet">“${escapeHtml(message)}”. ${advice[retry]}</p>
</article>`;
}
