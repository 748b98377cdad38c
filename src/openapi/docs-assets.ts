/**
 * The pages for people: `/docs`, which shows the OpenAPI document in a viewer, `/docs/errors`, and what they load. Everything
 * comes from this program: no font, script or picture of another host (docs/decisions/0007-api-viewer.md).
 */
import { hash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { docsPage, docsScript, docsStyle } from './docs-page.ts';
import { errorsPage } from './errors-page.ts';

/** Something to serve at a path, as it is. */
export type DocsAsset = {
  readonly path: string;
  readonly mediaType: string;
  readonly cacheControl: string;
  /** Name, value, name, value ... */
  readonly fields: readonly string[];
  readonly read: () => Promise<string | Uint8Array> | string | Uint8Array;
};

/** The names of assets change with their content, so they may be kept for ever (RFC 8246). */
const immutable = 'public, max-age=31536000, immutable';
const pageCacheControl = 'no-cache';

/** Held equal to the installed package by a test; part of the asset's name, so that it may be kept for ever. */
export const viewerVersion = '2.4.820';
/** The one file of the viewer in its package, and where a build puts a copy of it beside this file. */
export const viewerModule = 'openapi-explorer/dist/browser/openapi-explorer.min.js';
export const viewerCopy = './openapi-explorer.min.js';

/** The viewer writes style attributes, which only `unsafe-inline` allows; scripts come from files alone. */
const viewerPolicy =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const plainPolicy =
  "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** @param title of the API, shown as text */
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
    fields: [
      'Content-Security-Policy',
      policy,
      'X-Content-Type-Options',
      'nosniff',
      'Referrer-Policy',
      'no-referrer',
    ],
    read: () => html,
  };
}

function asset(path: string, mediaType: string, read: DocsAsset['read']): DocsAsset {
  return { path, mediaType, cacheControl: immutable, fields: ['X-Content-Type-Options', 'nosniff'], read };
}

/**
 * The published package carries a copy of the viewer's one file (scripts/build.ts), so that its users install none of
 * the 45 MB that the viewer's package brings; a checkout reads it from that package.
 */
function viewerFile(): string {
  const copy = fileURLToPath(new URL(viewerCopy, import.meta.url));
  return existsSync(copy) ? copy : fileURLToPath(import.meta.resolve(viewerModule));
}

/** 48 bits of the content, enough to tell releases apart. */
function digest(text: string): string {
  return hash('sha256', text, 'base64url').slice(0, 8);
}
