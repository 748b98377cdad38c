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
import type { Retry } from '../http/problems-401-to-431.ts';
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
export const pageCacheControl = 'no-cache';

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

/** A code of the application, and what refuses with it. */
export type ApplicationCode = {
  readonly code: string;
  /** Undefined: each refusal chooses its status. */
  readonly status: number | undefined;
  /** Names of actions; empty: hooks, and functions that they share. */
  readonly actions: readonly string[];
};

/** The application that the pages document. */
export type Documented = {
  readonly title: string;
  /** The path before every path that clients see: `/backend`, or empty. */
  readonly root: string;
  /** There are pages at /docs/guides (guide-pages.ts). */
  readonly hasGuides: boolean;
};

/** @param readCodes of the application; called for the first request of the page of errors */
export function docsAssets(
  documented: Documented,
  readCodes: () => Promise<readonly ApplicationCode[]> | readonly ApplicationCode[] = () => [],
): readonly DocsAsset[] {
  const script = asset(
    `/docs/assets/docs-${digest(docsScript)}.js`,
    'text/javascript; charset=utf-8',
    () => docsScript,
  );
  const style = asset(stylePath(), 'text/css; charset=utf-8', () => docsStyle);
  const explorer = asset(
    `/docs/assets/openapi-explorer-${viewerVersion}.js`,
    'text/javascript; charset=utf-8',
    () => readFile(viewerFile()),
  );
  const paths = { script: script.path, style: style.path, viewer: explorer.path };
  return [
    page('/docs', viewerPolicy, () => docsPage(documented, paths)),
    plainPage('/docs/errors', async () => errorsPage(documented, await readCodes())),
    script,
    style,
    explorer,
  ];
}

function page(path: string, policy: string, read: DocsAsset['read']): DocsAsset {
  return {
    path,
    mediaType: 'text/html; charset=utf-8',
    cacheControl: pageCacheControl,
    fields: ['Content-Security-Policy', policy, 'Referrer-Policy', 'no-referrer'],
    read,
  };
}

/** A page without a script. */
export function plainPage(path: string, read: DocsAsset['read']): DocsAsset {
  return page(path, plainPolicy, read);
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

function stylePath(): string {
  return `/docs/assets/docs-${digest(docsStyle)}.css`;
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

function errorsPage(documented: Documented, codes: readonly ApplicationCode[]): string {
  const byStatus = Map.groupBy(Object.keys(problems) as ProblemCode[], (code) => problems[code].status);
  const sections = [...byStatus]
    .sort(([one], [other]) => one - other)
    .map(
      ([status, codes]) =>
        `<section>\n<h2>${status} ${reasonPhrases[status] ?? ''}</h2>\n${codes.map(entry).join('\n')}\n</section>`,
    );
  const main = `<h1>Errors</h1>
<p>Every error response has a JSON body with <code>error</code>, a message for people, and <code>code</code>, which is stable and for programs.
With <code>Accept: application/problem+json</code> it also has the members of RFC&nbsp;9457. If the content is invalid, <code>errors</code> points to each invalid member.</p>
${applicationSection(documented.title, codes)}${sections.join('\n')}`;
  return plainHtml({ ...documented, heading: 'Errors', here: '/docs/errors', main });
}

/** The codes that stand in the application's functions, or that its actions declare; those of the registry have their own entry. */
function applicationSection(title: string, codes: readonly ApplicationCode[]): string {
  const own = codes.filter(({ code }) => !Object.hasOwn(problems, code));
  if (own.length === 0) return '';
  const entries = own.map(({ code, status, actions }) => {
    const by =
      actions.length === 0
        ? 'A function'
        : `The ${actions.length === 1 ? 'action' : 'actions'} ${list(actions)}`;
    const verb = actions.length > 1 ? 'refuse' : 'refuses';
    const answered = status === undefined ? '' : ` with ${status} ${reasonPhrases[status] ?? ''}`;
    const name = escapeHtml(code);
    return `<article id="${name}">
<h3><a href="#${name}"><code>${name}</code></a></h3>
<p>${by} of this application ${verb} the request${answered}; <code>error</code> of the response says why.</p>
</article>`;
  });
  return `<section>\n<h2>Codes of ${escapeHtml(title)}</h2>\n${entries.join('\n')}\n</section>\n`;
}

function list(names: readonly string[]): string {
  return names.map((name) => `<code>${escapeHtml(name)}</code>`).join(', ');
}

function entry(code: ProblemCode): string {
  const { message, meaning, retry } = problems[code];
  return `<article id="${code}">
<h3><a href="#${code}"><code>${code}</code></a></h3>
<p>${escapeHtml(meaning)}</p>
<p class="quiet">“${escapeHtml(message)}”. ${advice[retry]}</p>
</article>`;
}

type PlainPage = Documented & {
  readonly heading: string;
  /** The path in the bar that it belongs to. */
  readonly here: keyof typeof barTexts;
  /** HTML of its content. */
  readonly main: string;
};

/** The text of a page without a script: the errors, and the guides (guide-pages.ts). */
export function plainHtml({ heading, here, main, ...documented }: PlainPage): string {
  const { title, root } = documented;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(heading)}: ${escapeHtml(title)} API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${root}${stylePath()}">
</head>
<body>
${bar(documented, here)}
<main>
${main}
</main>
</body>
</html>
`;
}

// The page at `/docs`: our own bar and the viewer below it, with their script and style. Without JavaScript, the page
// links to the document.
//

type DocsPaths = { readonly script: string; readonly style: string; readonly viewer: string };

function docsPage(documented: Documented, paths: DocsPaths): string {
  const { title, root } = documented;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)} API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${root}${paths.style}">
<script type="module" src="${root}${paths.viewer}"></script>
<script type="module" src="${root}${paths.script}"></script>
</head>
<body class="viewer">
${bar(documented, '/docs')}
<noscript><p class="notice">The reference needs JavaScript. Everything it shows is in <a href="${root}/openapi.json">${root}/openapi.json</a>.</p></noscript>
<p class="notice" id="failure" role="alert" hidden></p>
<openapi-explorer tabindex="-1" server-url="${root || '/'}" hide-server-selection hide-components
 primary-color="#0b5c8a" secondary-color="#8a4b0b" bg-color="#ffffff" text-color="#1f2328" header-bg-color="#f6f8fa" header-color="#1f2328"
 nav-bg-color="#f6f8fa" nav-text-color="#1f2328" nav-hover-bg-color="#e6edf3" nav-hover-text-color="#0b5c8a"></openapi-explorer>
</body>
</html>
`;
}

const barTexts = {
  '/docs': 'Reference',
  '/docs/errors': 'Errors',
  '/docs/guides': 'Guides',
  '/openapi.json': 'OpenAPI&nbsp;3.2',
  '/openapi.json?version=3.1': '3.1',
} as const;

function bar({ title, root, hasGuides }: Documented, here: keyof typeof barTexts): string {
  const shown = Object.entries(barTexts).filter(([path]) => hasGuides || path !== '/docs/guides');
  const links = shown.map(
    ([path, text]) => `<a href="${root}${path}"${path === here ? ' aria-current="page"' : ''}>${text}</a>`,
  );
  return `<header class="bar">
<strong>${escapeHtml(title)}</strong>
<nav aria-label="Documentation">
${links.join('\n')}
</nav>
</header>`;
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};
const special = /[&<>"']/g;

/** Escapes text for HTML text and for quoted attribute values. */
export function escapeHtml(text: string): string {
  return text.replace(special, (character) => entities[character] ?? '');
}

/**
 * Passes both parts of the document to the viewer as one, with the codes of `x-errors` in words. Its paths are relative to `/docs`, with or
 * without a root, because the file is the same for both.
 */
const docsScript = `const explorer = document.querySelector('openapi-explorer');
async function read(part) {
  const response = await fetch('openapi.json?part=' + part, { headers: { Accept: 'application/json' } });
  if (!response.ok) throw new Error('openapi.json answered ' + response.status);
  return response.json();
}
try {
  const [description, operators] = await Promise.all(['application', 'operator'].map(read));
  for (const [path, item] of Object.entries(operators.paths)) description.paths[path] = { ...description.paths[path], ...item };
  for (const [kind, items] of Object.entries(operators.components)) description.components[kind] = { ...description.components[kind], ...items };
  const known = new Set(description.tags.map(({ name }) => name));
  description.tags.push(...operators.tags.filter(({ name }) => !known.has(name)));
  for (const item of Object.values(description.paths)) {
    for (const operation of Object.values(item)) {
      const errors = Object.entries(operation['x-errors'] ?? {});
      const lines = errors.map(([status, codes]) => status + ' ' + codes.map((code) => '[' + code + '](docs/errors#' + code + ')').join(', '));
      if (lines.length > 0) operation.description = [operation.description ?? '', 'Errors besides those of any operation: ' + lines.join('; ') + '.'].join('\\n\\n').trim();
    }
  }
  await customElements.whenDefined('openapi-explorer');
  await explorer.loadSpec(description);
} catch (error) {
  const failure = document.getElementById('failure');
  failure.textContent = 'The reference could not be shown: ' + error.message;
  failure.hidden = false;
}
`;

/** The viewer has its own style and takes colours as attributes. */
const docsStyle = `:root { --text: #1f2328; --quiet: #57606a; --line: #d0d7de; --ground: #f6f8fa; --link: #0b5c8a; }
* { box-sizing: border-box; }
html { scroll-padding-top: 4.5rem; }
body { margin: 0; color: var(--text); background: #fff; font: 16px/1.55 system-ui, sans-serif; }
body.viewer { display: flex; flex-direction: column; height: 100vh; height: 100dvh; }
body.viewer openapi-explorer { flex: 1; min-height: 0;
  --border-color: #8c959f; --light-border-color: #d0d7de; --blue: #0b5c8a; --placeholder-color: #6e7781; }
a { color: var(--link); }
code { font: 0.9em ui-monospace, monospace; overflow-wrap: anywhere; }
.bar { position: sticky; top: 0; z-index: 1; display: flex; flex-wrap: wrap; gap: 0.25rem 1.5rem; align-items: baseline;
  padding: 0.6rem 1rem; background: var(--ground); border-bottom: 1px solid var(--line); }
.bar nav { display: flex; flex-wrap: wrap; gap: 0.25rem 1.25rem; }
.bar a { text-decoration: none; }
.bar a:hover, .bar a:focus-visible { text-decoration: underline; }
.bar a[aria-current] { color: var(--text); font-weight: 600; }
.notice { margin: 1rem; padding: 0.75rem 1rem; border-left: 4px solid var(--link); background: var(--ground); }
main { max-width: 52rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0 0 0.5rem; }
h2 { font-size: 1.15rem; margin: 2.25rem 0 0; padding-bottom: 0.3rem; border-bottom: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 0; }
h3 a { color: inherit; text-decoration: none; }
h3 a:hover::after, h3 a:focus-visible::after { content: " #"; color: var(--quiet); }
article { padding: 0.9rem 0; border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
article:target { background: #fff8e1; box-shadow: 0 0 0 0.5rem #fff8e1; }
article p { margin: 0.25rem 0 0; }
pre, .wide { overflow-x: auto; margin: 1rem 0; }
pre { padding: 0.75rem 1rem; background: var(--ground); border: 1px solid var(--line); line-height: 1.45; }
pre code { overflow-wrap: normal; font-size: 0.85rem; }
table { border-collapse: collapse; font-size: 0.92rem; }
th, td { padding: 0.35rem 0.75rem 0.35rem 0; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
main :not(pre) > code { padding: 0.1em 0.25em; background: var(--ground); }
.wide code { overflow-wrap: normal; }
h2 + h3 { margin-top: 1rem; }
.quiet { color: var(--quiet); font-size: 0.92rem; }
`;
