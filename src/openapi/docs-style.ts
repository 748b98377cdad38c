/** The style of the documentation pages. The viewer brings its own and takes colours as attributes (docs-page.ts). */
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
article { padding: 0.9rem 0; border-bottom: 1px solid var(--line); }
article:target { background: #fff8e1; box-shadow: 0 0 0 0.5rem #fff8e1; }
article p { margin: 0.25rem 0 0; }
.quiet { color: var(--quiet); font-size: 0.92rem; }
`;
