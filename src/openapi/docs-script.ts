/**
 * The script of `/docs`: hands the document to the viewer without the operations that stand on every path alike. HEAD, OPTIONS
 * and TRACE would be half of the list and tell a reader nothing; the viewer takes
 * the scheme ApiKey for a second Bearer. /openapi.json has them all.
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
