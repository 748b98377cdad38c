/** Accounts and identities that meet: links that their owners ask for, and takeovers that nobody gets (§5.3), on both stores. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import {
  passwordChange,
  type User,
  type UserFields,
  usersTable,
} from '../../../src/accounts/account-tables.ts';
import { sessionCookieName } from '../../../src/accounts/sessions/cookie.ts';
import { createFindUser, userRow } from '../../../src/accounts/users/user-row.ts';
import type { Store } from '../../../src/store/store.ts';
import { type OpenedProvider, openProvider, type Person } from '../../harness/openid-provider.ts';
import { embeddedOnly } from '../../harness/stores.ts';
import { Browser, type Page } from '../../oidc/browser.ts';
import { type OpenedComity, openComity } from '../../oidc/open-comity.ts';
import { countsOf, factsOf } from '../../oidc/rows.ts';
import { plainAccounts } from '../fixtures/plain-accounts.ts';

const ada: Person = { sub: 'ada', email: 'ada@shop.example', email_verified: true };
const eve: Person = { sub: 'eve', email: 'eve@evil.example', email_verified: true };

/** As a browser tells it of a link on a page of ours. */
const fromOurPage = { 'Sec-Fetch-Site': 'same-origin' };

class Scene {
  readonly store: Store;
  readonly comity: OpenedComity;
  readonly op: OpenedProvider;

  constructor(store: Store, comity: OpenedComity, op: OpenedProvider) {
    this.store = store;
    this.comity = comity;
    this.op = op;
  }

  /** An account as registration leaves it, in a browser that is logged in to it. */
  async account(fields: Partial<UserFields> = {}): Promise<{ user: User; browser: Browser }> {
    const at = Date.now();
    const id = `usr_${randomBytes(13).toString('hex')}`;
    const whole: UserFields = {
      email: 'ada@shop.example',
      emailVerified: true,
      roles: [],
      scopes: ['read', 'write'],
      disabled: false,
      ...fields,
    };
    const next = userRow(plainAccounts.users, id, whole, at, at);
    const changes = [
      { table: usersTable, id, expect: { absent: true }, next } as const,
      passwordChange(id, undefined, '$argon2id$somebody', at),
    ];
    assert.equal((await this.store.commit({ changes, events: [] })).outcome, 'committed');
    const user = JSON.parse(next.doc) as User;
    return { user, browser: await this.loggedIn(user) };
  }

  async loggedIn(user: User): Promise<Browser> {
    const opened = await this.comity.sessions.open(user, { cookie: true, at: Date.now() });
    assert.equal((await this.store.commit({ changes: opened.changes, events: [] })).outcome, 'committed');
    const cookie = /^__Host-comity_session=([^;]+)/.exec(opened.fields[1] ?? '')?.[1] ?? '';
    const browser = new Browser();
    browser.setCookie(this.comity.origin, sessionCookieName, cookie);
    return browser;
  }

  /** What happens to an account while its row is looked at by nobody. */
  async change(user: User, fields: Partial<UserFields>): Promise<void> {
    const found = await createFindUser(this.store).byId(user.id);
    if (found === undefined) throw new Error('no such account');
    const changed = { ...found.user, ...fields };
    const next = userRow(plainAccounts.users, user.id, changed, found.row.createdAt, Date.now());
    const changes = [{ table: usersTable, id: user.id, expect: { rev: found.row.rev }, next }];
    assert.equal((await this.store.commit({ changes, events: [] })).outcome, 'committed');
  }

  signIn(person: Person, browser = new Browser()): Promise<Page> {
    this.op.signedIn = person;
    return browser.follow(this.comity.startOf('oidc'));
  }

  async link(person: Person, browser: Browser, headers: Record<string, string> = fromOurPage): Promise<Page> {
    this.op.signedIn = person;
    const start = await browser.get(`${this.comity.startOf('oidc')}?link=true`, headers);
    const location = start.headers.get('location');
    return location === null ? start : browser.follow(location);
  }
}

function userOf(page: Page): string | undefined {
  assert.equal(page.status, 200, page.body);
  return (page.json().user as User).id;
}

function assertRefused(page: Page, status: number, code: string): void {
  assert.deepEqual([page.status, page.json().code], [status, code], page.body);
}

for (const [engine, openStores] of embeddedOnly) {
  const scene = (title: string, play: (scene: Scene) => Promise<void>) =>
    test(`${title} (${engine})`, async (context: TestContext) => {
      const [store] = await openStores(context);
      const op = await openProvider(context);
      const comity = await openComity(context, { store, providers: [op.provider] });
      op.register(comity.callbackOf('oidc'));
      await play(new Scene(store, comity, op));
    });

  scene('links who is logged in, and signs them in from then on', async (scene) => {
    const { user, browser } = await scene.account();
    const person = { ...eve, email: 'ada@home.example' };
    const sessions = (await countsOf(scene.store)).sessions;
    const page = await scene.link(person, browser);
    assert.deepEqual(page.json(), { user: { id: user.id, email: user.email } });
    assert.equal((await countsOf(scene.store)).sessions, sessions);
    assert.equal(userOf(await scene.signIn(person)), user.id);
    assert.deepEqual([...(await factsOf(scene.store))].sort(), ['identity.linked', 'login.succeeded']);
  });

  scene('leads on after a link without touching the session', async (scene) => {
    const { browser } = await scene.account();
    scene.op.signedIn = eve;
    const before = browser.cookie(scene.comity.origin, sessionCookieName);
    const start = await browser.get(
      `${scene.comity.startOf('oidc')}?link=true&redirect=/profile`,
      fromOurPage,
    );
    const page = await browser.follow(start.headers.get('location') ?? '', (url) => url.endsWith('/profile'));
    assert.deepEqual([page.status, page.headers.get('location')], [303, '/profile']);
    assert.equal(browser.cookie(scene.comity.origin, sessionCookieName), before);
  });

  scene('links for an access token, not for a key, nor for nobody', async (scene) => {
    const { user } = await scene.account();
    const opened = await scene.comity.sessions.open(user, { cookie: false, at: Date.now() });
    await scene.store.commit({ changes: opened.changes, events: [] });
    const bearer = { Authorization: `Bearer ${opened.content.token}` };
    assert.deepEqual((await scene.link(eve, new Browser(), bearer)).status, 200);
    assertRefused(await scene.link(eve, new Browser(), { Authorization: 'Bearer key' }), 403, 'forbidden');
    assertRefused(await scene.link(eve, new Browser(), {}), 401, 'no_token_provided');
  });

  scene('links nothing because a page of another site, or a mail, leads there', async (scene) => {
    const { browser } = await scene.account();
    for (const headers of [
      { 'Sec-Fetch-Site': 'cross-site' },
      { 'Sec-Fetch-Site': 'same-site' },
      { 'Sec-Fetch-Site': 'none' },
      { 'Sec-Fetch-Site': 'cross-site', Origin: 'https://evil.example' },
      { Origin: 'https://evil.example' },
      {},
    ]) {
      assertRefused(await scene.link(eve, browser, headers), 403, 'forbidden');
    }
    assert.equal((await countsOf(scene.store)).identities, 0);
  });

  scene('links nothing when the session ended meanwhile', async (scene) => {
    const { user, browser } = await scene.account();
    scene.op.signedIn = eve;
    const start = await browser.get(`${scene.comity.startOf('oidc')}?link=true`, fromOurPage);
    const changes = await scene.comity.sessions.endOfUser(user.id, null);
    await scene.store.commit({ changes, events: [] });
    assertRefused(await browser.follow(start.headers.get('location') ?? ''), 400, 'sign_in_invalid');
    assert.equal((await countsOf(scene.store)).identities, 0);
  });

  scene('does not take an identity from the account that has it', async (scene) => {
    const first = userOf(await scene.signIn(eve));
    const { browser } = await scene.account();
    assertRefused(await scene.link(eve, browser), 409, 'account_exists');
    assert.equal(userOf(await scene.signIn(eve)), first);
  });

  scene('enters an account whose address both sides have verified', async (scene) => {
    const { user } = await scene.account();
    assert.equal(userOf(await scene.signIn({ ...ada, email: 'ADA@shop.example' })), user.id);
    assert.equal(userOf(await scene.signIn(ada)), user.id);
    assert.equal((await countsOf(scene.store)).users, 1);
  });

  scene('does not let a provider that verifies nothing take an account over', async (scene) => {
    await scene.account();
    for (const claim of [{ email_verified: false }, {}]) {
      const page = await scene.signIn({ sub: 'eve', email: 'ada@shop.example', ...claim });
      assertRefused(page, 409, 'account_exists');
      assert.match(String(page.json().error), /log in to it and link the provider there/);
    }
    const { identities, users } = await countsOf(scene.store);
    assert.deepEqual([identities, users], [0, 1]);
  });

  scene('does not let the owner of an address into the account of who registered it first', async (scene) => {
    // Classic-federated merge: Eve registers Ada's address with a password, and waits for Ada to come by her provider.
    await scene.account({ emailVerified: false });
    assertRefused(await scene.signIn(ada), 409, 'account_exists');
    assert.equal((await countsOf(scene.store)).identities, 0);
  });

  scene('forgets an identity that was linked before the owner of the address came', async (scene) => {
    // Trojan identifier: Eve registers Ada's address, links her own identity, and Ada gets the account back by a mail.
    const { user, browser } = await scene.account({ emailVerified: false });
    assert.equal((await scene.link(eve, browser)).status, 200);
    assert.equal(userOf(await scene.signIn(eve)), user.id);
    await scene.change(user, { emailVerified: true });
    assertRefused(await scene.signIn(eve), 409, 'account_exists');
    assert.equal(userOf(await scene.signIn(ada)), user.id);
    assertRefused(await scene.signIn(eve), 409, 'account_exists');
    // Ada herself may let that identity in.
    assert.equal((await scene.link(eve, await scene.loggedIn(user))).status, 200);
    assert.equal(userOf(await scene.signIn(eve)), user.id);
  });

  scene('forgets who came first by a provider that verifies nothing', async (scene) => {
    // Non-verifying provider: Eve has an account with Ada's address at a provider that never asked.
    const claimed = { sub: 'eve', email: 'ada@shop.example', email_verified: false };
    const id = userOf(await scene.signIn(claimed));
    assert.equal(userOf(await scene.signIn(claimed)), id);
    assertRefused(await scene.signIn(ada), 409, 'account_exists');
    await scene.change({ id } as User, { emailVerified: true });
    assertRefused(await scene.signIn(claimed), 409, 'account_exists');
    assert.equal(userOf(await scene.signIn(ada)), id);
  });

  scene('lets nobody into a disabled account, and makes no other one of the identity', async (scene) => {
    const id = userOf(await scene.signIn(ada));
    await scene.change({ id } as User, { disabled: true });
    assertRefused(await scene.signIn(ada), 403, 'forbidden');
    assert.equal((await countsOf(scene.store)).users, 1);
    assert.deepEqual([...(await factsOf(scene.store))].sort().slice(0, 2), [
      'account.registered',
      'identity.linked',
    ]);
  });

  scene('makes a new account of an identity whose account is gone', async (scene) => {
    const id = userOf(await scene.signIn(ada)) ?? '';
    const row = await scene.store.read(usersTable, id);
    const removal = { table: usersTable, id, expect: { rev: row?.rev ?? 0 }, next: null };
    await scene.store.commit({ changes: [removal], events: [] });
    assert.notEqual(userOf(await scene.signIn(ada)), id);
  });
}
