/** Statuses and credentials of the operations of accounts, and what a configuration changes about them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { accounts, documentOf, type Item, isOpen, operation, operationsOf, resolved } from './fixture.ts';
import { codesOf, methodsOf, type Statuses, statusesOf, testStatuses } from './statuses.ts';

const document = documentOf(new Map());

const table: Statuses = [
  ['post', 'auth/register', '201 401 403 406 409 412 413 415 422 429'],
  ['post', 'auth/login', '200 401 403 406 412 413 415 422 429'],
  ['post', 'auth/refresh', '200 401 403 406 412 413 415 422 429'],
  ['post', 'auth/logout', '204 401 403 406 412 413 415 422 429'],
  ['get', 'auth/me', '200 401 406 412 429'],
  ['post', 'auth/password', '204 401 403 406 412 413 415 422 429'],
  ['post', 'auth/verification', '204 401 403 406 412 413 415 422 429'],
  ['post', 'auth/verification/confirm', '204 401 403 406 409 412 413 415 422 429'],
  ['post', 'auth/me/email', '204 401 403 406 412 413 415 422 429'],
  ['post', 'auth/me/email/undo', '204 401 403 406 409 412 413 415 422 429'],
  ['post', 'auth/invitation/accept', '200 401 403 406 412 413 415 422 429'],
  ['post', 'auth/invite', '200 201 401 403 406 409 412 413 415 422 429'],
  ['post', 'auth/invite/link', '200 201 401 403 406 409 412 413 415 422 429'],
  ['get', 'users/{id}/second-factor', '200 401 403 404 406 412 429'],
  ['post', 'auth/password-reset', '204 401 403 406 412 413 415 422 429'],
  ['post', 'auth/password-reset/confirm', '204 401 403 406 412 413 415 422 429'],
  ['get', 'auth/oauth/{provider}', '303 401 403 404 406 412 429 502'],
  ['get', 'auth/oauth/{provider}/callback', '200 303 401 403 404 406 409 412 429 502'],
  ['get', 'users', '200 304 401 403 406 412 429'],
  ['query', 'users', '200 304 401 403 406 412 413 415 422 429'],
  ['post', 'users', '201 202 303 401 403 406 409 412 413 415 422 429'],
  ['get', 'users/{id}', '200 304 401 403 404 406 412 429'],
  ['put', 'users/{id}', '200 202 204 401 403 404 406 409 412 413 415 422 429'],
  ['patch', 'users/{id}', '200 202 204 401 403 404 406 409 412 413 415 422 429'],
  ['delete', 'users/{id}', '200 202 204 401 403 404 406 409 412 422 429'],
  ['post', 'users/bulk-delete', '200 202 204 401 403 406 409 412 413 415 422 429'],
  ['post', 'users/{id}/password', '204 401 403 404 406 412 413 415 422 429'],
  ['get', 'keys', '200 304 401 403 406 412 429'],
  ['post', 'keys', '201 401 403 406 409 412 413 415 422 429'],
  ['get', 'keys/{id}', '200 304 401 403 404 406 412 429'],
  ['patch', 'keys/{id}', '200 204 401 403 404 406 409 412 413 415 422 429'],
  ['delete', 'keys/{id}', '200 202 204 401 403 404 406 409 412 422 429'],
  ['post', 'keys/{id}/rotate', '200 401 403 404 406 412 413 415 422 429'],
  ['get', 'audit', '200 304 401 403 406 412 429'],
  ['query', 'audit', '200 304 401 403 406 412 413 415 422 429'],
  ['get', 'audit/{id}', '200 304 401 403 404 406 412 429'],
];

testStatuses(document, table);

test('gives the public keys no status of who may ask', () => {
  assert.equal(statusesOf(document, 'get', '/.well-known/jwks.json').join(' '), '200 304 401 406 412 429');
});

test('describes no operation that a built-in collection does not have', () => {
  const methods = (path: string) => methodsOf(document, path);
  assert.equal(methods('audit'), 'get query');
  assert.equal(methods('audit/{id}'), 'get');
  assert.equal(methods('audit/bulk-delete'), '');
  assert.equal(methods('keys/{id}'), 'get patch delete');
  assert.equal(methods('users/{id}'), 'get put patch delete');
});

test('opens without a credential what one does before one has any', () => {
  const open = operationsOf(document)
    .filter(({ method, path }) => method === 'post' && path.startsWith('/api/v1/'))
    .filter(({ item }) => isOpen(document, item))
    .map(({ path }) => path.slice('/api/v1/'.length));
  assert.deepEqual(open, [
    'auth/register',
    'auth/login',
    'auth/login/second-factor',
    'auth/refresh',
    'auth/login/passkey/options',
    'auth/login/passkey',
    'auth/verification',
    'auth/verification/confirm',
    'auth/me/email/undo',
    'auth/password-reset',
    'auth/password-reset/confirm',
    'auth/invitation/passkey-options',
    'auth/invitation/accept',
    // With the token of a link in the content.
    'portal-sessions',
  ]);
});

test('names every carrier of credentials, and for people alone those of people', () => {
  const { securitySchemes } = document.components as { securitySchemes: Record<string, Item> };
  assert.deepEqual(Object.keys(securitySchemes), [
    'bearer',
    'basic',
    'apiKeyHeader',
    'apiKeyQuery',
    'cookieAuth',
  ]);
  assert.deepEqual(
    { in: securitySchemes.cookieAuth?.in, name: securitySchemes.cookieAuth?.name },
    { in: 'cookie', name: '__Host-comity_session' },
  );
  const schemes = (path: string) =>
    (operation(document, 'post', `/api/v1/auth/${path}`).security as readonly Item[]).flatMap(Object.keys);
  assert.deepEqual(schemes('logout'), ['bearer', 'cookieAuth']);
  assert.deepEqual(schemes('password'), ['bearer', 'basic', 'cookieAuth']);
});

test('tells which codes stand behind the statuses of a login and a registration', () => {
  const codes = (path: string, status: number) => codesOf(document, 'post', `/api/v1/auth/${path}`, status);
  assert(codes('login', 401).includes('invalid_credentials'));
  assert(codes('login', 403).includes('cross_site_request'));
  assert(codes('login', 429).includes('rate_limited'));
  assert(codes('refresh', 401).includes('invalid_token'));
  assert(codes('logout', 403).includes('forbidden'));
  assert(codes('verification', 400).includes('field_missing'));
  assert(codes('password-reset/confirm', 400).includes('code_invalid'));
  assert.deepEqual(codes('register', 409), ['unique_taken']);
});

test('refuses bad credentials everywhere with the same codes, and pages of other sites where something changes', () => {
  const read = codesOf(document, 'get', '/api/v1/events', 401);
  assert.deepEqual(read, ['api_key_required', 'invalid_api_key', 'invalid_credentials', 'invalid_token']);
  assert.deepEqual(codesOf(document, 'post', '/api/v1/auth/register', 403), ['cross_site_request']);
  assert(codesOf(document, 'get', '/api/v1/events', 400).includes('credentials_repeated'));
});

test('tells of unverified addresses and of closed registration where the program is set up so', () => {
  const strict = documentOf(new Map(), '3.2', {
    accounts: { ...accounts, registration: 'closed', verifiedEmailRequired: true, providers: [] },
  });
  assert.deepEqual(codesOf(strict, 'get', '/api/v1/events', 403), ['email_unverified']);
  assert(codesOf(strict, 'post', '/api/v1/auth/register', 403).includes('forbidden'));
  assert(!operationsOf(strict).some(({ path }) => path.includes('/oauth/')));
  const made = (of: Item) => {
    const { responses } = operation(of, 'post', '/api/v1/auth/register') as { responses: Item };
    return JSON.stringify(resolved(of, responses['201']).content);
  };
  assert.match(made(strict), /schemas\/Account"/);
  assert.match(made(document), /schemas\/Tokens"/);
});

test('leaves the names of its own schemas to no collection', () => {
  const { schemas } = document.components as { schemas: Item };
  for (const name of ['Account', 'Tokens', 'Login', 'Key', 'User', 'AuditEntry', 'JwkSet', 'Me'])
    assert(name in schemas, name);
});

test('describes no accounts where the program keeps none', () => {
  const bare = documentOf(new Map(), '3.2', { accounts: undefined });
  assert(!operationsOf(bare).some(({ path }) => path.includes('/auth/') || path.includes('/users')));
});
