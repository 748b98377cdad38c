/** Which account somebody gets, in every case that docs/decisions/0023-account-linking.md names. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { User } from '../../../src/accounts/account-tables.ts';
import {
  type AccountRules,
  decideAccount,
  type Findings,
} from '../../../src/accounts/oauth/enter-account.ts';
import type { ProviderIdentity } from '../../../src/accounts/oauth/redeem-code.ts';

const rules: AccountRules = { registration: 'open', verifiedEmailRequired: false };
const time = '2026-11-21T12:00:00.000Z';

function user(id: string, fields: Partial<User> = {}): User {
  return {
    id,
    email: 'ada@shop.example',
    emailVerified: true,
    roles: [],
    scopes: ['read', 'write'],
    disabled: false,
    createdAt: time,
    updatedAt: time,
    ...fields,
  };
}

const verified: ProviderIdentity = {
  issuer: 'https://login.example',
  subject: 'x',
  email: 'ada@shop.example',
  emailVerified: true,
  name: undefined,
};
const asserted: ProviderIdentity = { ...verified, emailVerified: false };
const elsewhere: ProviderIdentity = { ...verified, email: 'ada@home.example' };
const silent: ProviderIdentity = { ...asserted, email: undefined };

const own = user('own');
const ownUnverified = user('own', { emailVerified: false });
const disabled = user('own', { disabled: true });

type Case = readonly [
  title: string,
  findings: Partial<Findings> & Pick<Findings, 'identity'>,
  expected: string,
  rules?: Partial<AccountRules>,
];

const cases: readonly Case[] = [
  [
    'a known identity enters its account',
    { identity: elsewhere, linked: { user: own, proven: true } },
    'enter own proven',
  ],
  [
    'a known identity enters without telling an address',
    { identity: silent, linked: { user: own, proven: true } },
    'enter own proven',
  ],
  [
    'a known identity enters its account, whoever has its address now',
    { identity: elsewhere, linked: { user: own, proven: true }, sameAddress: user('other') },
    'enter own proven',
  ],
  [
    'a disabled account is not entered',
    { identity: verified, linked: { user: disabled, proven: true } },
    'forbidden own',
  ],
  [
    'an unverified account is entered by the identity that it was made with',
    { identity: asserted, linked: { user: ownUnverified, proven: false } },
    'enter own unproven',
  ],
  [
    'but no longer once somebody has verified the address',
    { identity: asserted, linked: { user: own, proven: false } },
    'account_exists own',
  ],
  [
    'nor by an identity that asserts another verified address',
    { identity: elsewhere, linked: { user: own, proven: false } },
    'account_exists own',
  ],
  [
    'unless it is the owner of the address, who is believed from then on',
    { identity: verified, linked: { user: own, proven: false } },
    'enter own proven',
  ],
  [
    'an unverified account is not entered where addresses must be verified',
    { identity: asserted, linked: { user: ownUnverified, proven: false } },
    'email_unverified own',
    { verifiedEmailRequired: true },
  ],
  [
    'an address that both sides have verified links and enters',
    { identity: verified, sameAddress: own },
    'link-and-enter own proven',
  ],
  [
    'an address that only the account has verified does not',
    { identity: asserted, sameAddress: own },
    'account_exists own',
  ],
  [
    'an address that only the provider has verified does not',
    { identity: verified, sameAddress: ownUnverified },
    'account_exists own',
  ],
  [
    'an address that nobody has verified does not',
    { identity: asserted, sameAddress: ownUnverified },
    'account_exists own',
  ],
  ['a disabled account is not linked to', { identity: verified, sameAddress: disabled }, 'forbidden own'],
  ['a new address makes an account', { identity: asserted }, 'register ada@shop.example'],
  ['but none where registration is closed', { identity: verified }, 'forbidden', { registration: 'closed' }],
  ['nor without an address', { identity: silent }, 'sign_in_invalid'],
  [
    'nor with an unverified one where that is not enough',
    { identity: asserted },
    'email_unverified',
    { verifiedEmailRequired: true },
  ],
  [
    'a verified one is enough',
    { identity: verified },
    'register ada@shop.example',
    { verifiedEmailRequired: true },
  ],
  [
    'somebody logged in links any identity to a verified account',
    { identity: elsewhere, linkingTo: { user: own } },
    'link own proven',
  ],
  [
    'and to an unverified one, which proves nothing',
    { identity: elsewhere, linkingTo: { user: ownUnverified } },
    'link own unproven',
  ],
  [
    'unless the identity owns that address',
    { identity: verified, linkingTo: { user: ownUnverified } },
    'link own proven',
  ],
  [
    'closed registration does not keep from linking',
    { identity: silent, linkingTo: { user: own } },
    'link own proven',
    { registration: 'closed' },
  ],
  [
    'linking again is no fault',
    { identity: verified, linked: { user: own, proven: false }, linkingTo: { user: own } },
    'link own proven',
  ],
  [
    'an identity of another account is not taken away from it',
    { identity: verified, linked: { user: user('other'), proven: true }, linkingTo: { user: own } },
    'account_exists own',
  ],
  [
    'an address of another account does not matter for a link',
    {
      identity: elsewhere,
      sameAddress: user('other', { email: 'ada@home.example' }),
      linkingTo: { user: own },
    },
    'link own proven',
  ],
  [
    'nothing is linked when the session is over',
    { identity: verified, sameAddress: own, linkingTo: { user: undefined } },
    'sign_in_invalid',
  ],
  ['nor to a disabled account', { identity: verified, linkingTo: { user: disabled } }, 'forbidden own'],
];

for (const [title, findings, expected, particular] of cases) {
  test(title, () => {
    const all = { linked: undefined, sameAddress: undefined, linkingTo: null, ...findings };
    const decided = decideAccount(all, { ...rules, ...particular });
    switch (decided.decision) {
      case 'refuse':
        return assert.equal([decided.problem.code, decided.subject ?? []].flat().join(' '), expected);
      case 'register':
        return assert.equal(`register ${decided.email}`, expected);
      default: {
        const proven = decided.proven ? 'proven' : 'unproven';
        return assert.equal(`${decided.decision} ${decided.user.id} ${proven}`, expected);
      }
    }
  });
}
