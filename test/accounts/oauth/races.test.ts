/** Callbacks that meet at one store, from two processes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AccountParts } from '../../../src/accounts/account-parts.ts';
import { type User, usersTable } from '../../../src/accounts/account-tables.ts';
import { enterAccount } from '../../../src/accounts/oauth/enter-account.ts';
import type { ProviderIdentity } from '../../../src/accounts/oauth/redeem-code.ts';
import { createSignIns, type Proofs } from '../../../src/accounts/oauth/sign-ins.ts';
import { createChallengeTokens } from '../../../src/accounts/second-factor/challenge-tokens.ts';
import type { Sessions } from '../../../src/accounts/sessions/sessions.ts';
import { createFindUser, userRow } from '../../../src/accounts/users/user-row.ts';
import type { Store } from '../../../src/store/store.ts';
import { servicesOver } from '../../harness/services-over.ts';
import { engines } from '../../harness/stores.ts';
import { countsOf } from '../../oidc/rows.ts';
import { noAsk, partsOver, plainAccounts } from '../fixtures/plain-accounts.ts';

const ada: ProviderIdentity = {
  issuer: 'https://login.example',
  subject: 'ada',
  email: 'ada@shop.example',
  emailVerified: true,
  name: undefined,
};

let drawn = 0;

/** What compose.ts hands over, with sessions that are nothing but rows. */
function partsOn(store: Store): AccountParts {
  const newId = () => String(++drawn).padStart(26, '0');
  const services = servicesOver(store, { newId });
  return partsOver(services, {
    challenges: createChallengeTokens(services, 'shared by the processes'),
    sessions: {
      open: async (user: User) => {
        const id = `ses_${newId()}`;
        const at = Date.now();
        const next = {
          doc: '{}',
          owner: user.id,
          createdAt: at,
          updatedAt: at,
          deletedAt: null,
          search: null,
          references: [],
        };
        return {
          changes: [{ table: 'sessions', id, expect: { absent: true } as const, next }],
          session: id,
          content: { token: '', expiresIn: 1, refreshToken: '', user: { id: user.id, email: user.email } },
          fields: [],
        };
      },
    } as unknown as Sessions,
    audit: {
      entry: () => {
        const id = `aud_${newId()}`;
        const next = {
          doc: `{"id":"${id}"}`,
          owner: null,
          createdAt: 1,
          updatedAt: 1,
          deletedAt: null,
          search: '',
          references: [],
        };
        return { table: 'audit', id, expect: { absent: true } as const, next };
      },
      note: () => undefined,
    },
  });
}

const arrival = {
  provider: 'oidc',
  link: null,
  identity: ada,
  cookie: false,
  address: '192.0.2.1',
  ask: noAsk,
};

for (const [engine, openStores] of engines) {
  test(`makes one account when one person comes at once everywhere (${engine})`, async (context) => {
    const handles = await openStores(context);
    const entries = await Promise.all(
      Array.from({ length: 6 }, (_, at) => {
        const identity = at < 4 ? ada : { ...ada, issuer: `https://other${at}.example` };
        return enterAccount(partsOn(handles[at % 2 === 0 ? 0 : 1]), { ...arrival, identity });
      }),
    );
    const users = entries.map((entered) => entered.kind === 'entered' && entered.opened.content.user.id);
    assert.equal(new Set(users).size, 1);
    assert.notEqual(users[0], false);
    assert.deepEqual(await countsOf(handles[0]), {
      users: 1,
      passwords: 1,
      identities: 3,
      sessions: 6,
      sign_ins: 0,
    });
  });

  test(`gives a sign-in to one process alone (${engine})`, async (context) => {
    const handles = await openStores(context);
    const processes = handles.map((store) => createSignIns(servicesOver(store)));
    const [one, other] = processes;
    if (one === undefined || other === undefined) throw new Error('two processes are wanted');
    for (let round = 0; round < 20; round += 1) {
      const begun = { provider: 'oidc', redirect: '/in', link: null };
      const proofs: Proofs = await one.begin(begun, 'browser');
      const taken: readonly unknown[] = await Promise.all([
        one.take('oidc', proofs.state, 'browser'),
        other.take('oidc', proofs.state, 'browser'),
        other.take('oidc', proofs.state, 'browser'),
      ]);
      assert.deepEqual(
        taken.filter((found) => found !== undefined),
        [{ signIn: begun, proofs }],
      );
    }
  });

  test(`does not let an unproven identity in beside the owner who takes the account back (${engine})`, async (context) => {
    const [store, other] = await openStores(context);
    const claimed = { ...ada, emailVerified: false };
    const first = await enterAccount(partsOn(store), { ...arrival, identity: claimed });
    if (first.kind !== 'entered') throw new Error('the first comer was refused');
    const { id } = first.opened.content.user;
    /** The address is verified, and all sessions end, after the account was read and before the session is committed. */
    let resets = 0;
    const racing: Store = {
      ...store,
      commit: async (unit) => {
        if (resets === 0) {
          resets += 1;
          const found = await createFindUser(other).byId(id);
          if (found === undefined) throw new Error('the account is gone');
          const verified = { ...found.user, emailVerified: true };
          const next = userRow(plainAccounts.users, id, verified, found.row.createdAt, Date.now());
          const change = { table: usersTable, id, expect: { rev: found.row.rev }, next };
          assert.equal((await other.commit({ changes: [change], events: [] })).outcome, 'committed');
        }
        return store.commit(unit);
      },
    };
    const second = await enterAccount(partsOn(racing), { ...arrival, identity: claimed });
    assert.equal(resets, 1);
    assert.deepEqual(second, { kind: 'refused', problem: { code: 'account_exists' } });
    assert.equal((await countsOf(store)).sessions, 1);
  });
}
