/**
 * The page at `/docs`: our own bar and the viewer below it, with their script and style. Without JavaScript, the page
 * links to the document.
 */

export type DocsPaths = { readonly script: string; readonly style: string; readonly viewer: string };

export function docsPage(title: string, paths: DocsPaths): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)} API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${paths.style}">
<script type="module" src="${paths.viewer}"></script>
<script type="module" src="${paths.script}"></script>
</head>
<body class="viewer">
${bar(title, 'reference')}
<noscript><p class="notice">The reference needs JavaScript. Everything it shows is in <a href="/openapi.json">/openapi.json</a>.</p></noscript>
<p class="notice" id="failure" role="alert" hidden></p>
<openapi-explorer tabindex="-1" server-url="/" hide-server-selection hide-components
 primary-color="#0b5c8a" secondary-color="#8a4b0b" bg-color="#ffffff" text-color="#1f2328" header-bg-color="#f6f8fa" header-color="#1f2328"
 nav-bg-color="#f6f8fa" nav-text-color="#1f2328" nav-hover-bg-color="#e6edf3" nav-hover-text-color="#0b5c8a"></openapi-explorer>
</body>
</html>
`;
}

export function bar(title: string, here: 'reference' | 'errors'): string {
  const link = (path: string, text: string, current: boolean) =>
    `<a href="${path}"${current ? ' aria-current="page"' : ''}>${text}</a>`;
  return `<header class="bar">
<strong>${escapeHtml(title)}</strong>
<nav aria-label="Documentation">
${link('/docs', 'Reference', here === 'reference')}
${link('/docs/errors', 'Errors', here === 'errors')}
${link('/openapi.json', 'OpenAPI&nbsp;3.2', false)}
${link('/openapi.json?version=3.1', '3.1', false)}
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
 * Passes the document to the viewer without HEAD, OPTIONS and TRACE, which are the same on every path and would be half
 * of the list, and without the scheme ApiKey, which the viewer shows as a second Bearer. /openapi.json has them all.
 */
export const docsScript = `const explorer = document.querySelector('openapi-explorer');
try {
  const response = await fetch('/openapi.json', { headers: { Accept: 'application/json' } });
  if (!response.ok) throw new Error('/openapi.json answered ' + response.status);
  const description = await response.json();
  for (const item of Object.values(description.paths)) {
    for (const method of ['head', 'options', 'trace']) delete item[method];
  }
  const { securitySchemes } = description.components;
  const unshown = Object.keys(securitySchemes).filter((name) => securitySchemes[name].scheme === 'ApiKey');
  for (const name of unshown) delete securitySchemes[name];
  for (const item of Object.values(description.paths)) {
    for (const operation of Object.values(item)) {
      if (operation.security) operation.security = operation.security.filter((wanted) => !unshown.some((name) => name in wanted));
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
export const docsStyle = `:root { --text: #1f2328; --quiet: #57606a; --line: #d0d7de; --ground: #f6f8fa; --link: #0b5c8a; }
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
.quiet { color: var(--quiet); font-size: 0.92rem; }
`;
