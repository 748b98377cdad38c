/** The page at `/docs`: a bar of our own, and the viewer below it. It works without scripts as far as naming the document. */
import { escapeHtml } from './escape-html.ts';

/** Paths of what the page loads. */
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

/** The bar that the pages share. */
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
