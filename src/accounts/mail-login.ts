/**
 * POST /auth/code, /auth/link and /auth/code/confirm (§5.4.8): a login, or the registration of an address without an account, by a code that
 * is mailed to the address, to be typed or in a link. The first two answer the same after the same work for every address, with a challenge that the browser keeps: the
 * code is good only with it, so a code that somebody else asked for opens nothing in the browser of the person who reads the mail. Attempts
 * are limited by challenge and by client address.
 *
 * The code takes the place of the password, and proves the address. An address that was not verified may have been registered by a stranger:
 * its password, sessions and keys end then.
 */
import { type TObject, Type } from 'typebox';
import { accountDefaults } from '../config/accounts.ts';
import { actionResource, type Done } from '../kernel/action.ts';
import { named } from '../kernel/documentation.ts';
import type { Ask, Resource } from '../kernel/resource.ts';
import { normalizeEmail } from '../mail/email.ts';
import { idFor } from '../model/id.ts';
import { overtaken } from '../store/lines.ts';
import { Overtaken } from '../store/store.ts';
import { type FoundCode, findCode, mailMissing, removeCodes } from './account-mail.ts';
import type { AccountParts } from './account-parts.ts';
import {
  accountsTag,
  checkEmail,
  codeSchema,
  cookieSchema,
  emailSchema,
  exampleChallenge,
  exampleEmail,
  refusedBy,
  tokensOutput,
} from './account-schemas.ts';
import { passwordChange, readPassword, usersTable } from './account-tables.ts';
import { type From, fromOf, originOf } from './audit.ts';
import { hookCodes } from './change-email.ts';
import { nextStep, stepProblem } from './login.ts';
import { loginPurposes } from './mail-texts.ts';
import { makeAccount, nameSchema, withFields } from './register.ts';
import { limitedAttempt } from './second-factor/change-factor.ts';
import { readFactor } from './second-factor/factor-row.ts';
import type { FoundUser } from './users/user-row.ts';
import { proveAddress } from './verify-email.ts';

const shared = { tag: accountsTag, ignoresCredentials: true } as const;
const browserBytes = 16;

/** The content of the second request. */
type Confirmation = {
  readonly challenge: string;
  readonly code: string;
  readonly cookie?: boolean;
  readonly name?: string;
};

export function mailLoginResources(parts: AccountParts): readonly Resource[] {
  const registers = parts.settings.registration === 'open';
  const open = loginPurposes.filter((each) => parts.accounts.passwordless[each]);
  if (open.length === 0) return [];
  return [...open.map((each) => beginResource(parts, each, registers)), confirmResource(parts, registers)];
}

const requests = {
  code: {
    ...{ id: 'requestLoginCode', name: 'LoginCodeRequest' },
    summary: 'Request a mail with a code to log in',
  },
  link: {
    ...{ id: 'requestLoginLink', name: 'LoginLinkRequest' },
    summary: 'Request a mail with a link to log in',
  },
} as const;

function beginResource(parts: AccountParts, purpose: 'code' | 'link', registers: boolean): Resource {
  const { base, settings, mail, challenges, random, addressOf } = parts;
  const { id, name, summary } = requests[purpose];
  return actionResource(
    {
      ...shared,
      path: `${base}/auth/${purpose}`,
      id,
      summary,
      description: `The response is the same whether the address has an account or not${registers ? '; an address without one is registered by the confirmation' : ''}. \`/auth/code/confirm\` takes the challenge with the code of the mail${purpose === 'link' ? ', which the link contains' : ''}. 503 if no mail server is configured.`,
      input: {
        name,
        schema: Type.Object({ email: emailSchema }),
        example: { email: exampleEmail },
      },
      output: mailChallenge,
      codes: [],
      check: checkEmail,
      handler: (ask, input) => {
        if (!mail.isConfigured) return mailMissing;
        const browser = random(browserBytes).toString('base64url');
        const email = normalizeEmail(input.email) ?? '';
        mail.request({
          ...{ purpose, for: { email }, challenge: browser },
          ...fromOf(ask.request, addressOf),
        });
        const expiresIn = settings.mailLoginSeconds;
        return { content: { challenge: challenges.issue('mailLogin', { browser }, expiresIn), expiresIn } };
      },
    },
    settings,
  );
}

function confirmResource(parts: AccountParts, registers: boolean): Resource {
  const { base, settings, isCrossSite, newAccounts } = parts;
  const members = {
    challenge: Type.String({ description: 'Of the response to the request for the mail.' }),
    code: codeSchema,
    cookie: cookieSchema,
  };
  const schema: TObject = registers
    ? withFields(Type.Object({ ...members, name: nameSchema }), newAccounts, false)
    : Type.Object(members);
  return actionResource(
    {
      ...shared,
      path: `${base}/auth/code/confirm`,
      id: 'loginByMail',
      summary: 'Log in with the code of the mail, or of its link',
      description: `Verifies the address. An account with a second factor is answered 401 \`second_factor_required\`, as by a password.${registers ? ' An address without an account is registered; further members are for that alone.' : ''}`,
      input: {
        name: 'MailLogin',
        schema,
        example: { challenge: exampleChallenge, code: 'h5tr-0b6y' },
      },
      output: tokensOutput,
      fields: ['Set-Cookie'],
      codes: [
        ...(['challenge_invalid', 'code_invalid', 'cross_site_request', 'rate_limited'] as const),
        ...(settings.verifiedEmailRequired ? (['email_unverified'] as const) : []),
        ...(['second_factor_required', ...hookCodes(parts)] as const),
        ...(registers && !newAccounts.isPlain ? (['field_unpatchable', 'unique_taken'] as const) : []),
      ],
      handler: async (ask, content) => {
        const input = content as Confirmation;
        if (input.cookie === true && isCrossSite(ask.request))
          return { refused: { code: 'cross_site_request' } };
        return confirmLogin(parts, ask, input);
      },
    },
    settings,
  );
}

const mailChallenge = {
  schema: named('MailChallenge', {
    description: 'The part of a login by mail that the browser keeps.',
    type: 'object',
    properties: {
      challenge: { type: 'string', description: 'For the confirmation, beside the code of the mail.' },
      expiresIn: { type: 'integer', description: 'Seconds until the code and the challenge expire.' },
    },
    required: ['challenge', 'expiresIn'],
  }),
  example: { challenge: exampleChallenge, expiresIn: 600 },
};

const wrongCode: Done = { refused: { code: 'code_invalid' } };

/** @throws StoreUnavailable */
async function confirmLogin(parts: AccountParts, ask: Ask, input: Confirmation): Promise<Done> {
  const { challenges, limit, store, audit, observe, addressOf } = parts;
  const opened = challenges.open('mailLogin', input.challenge);
  if (opened === undefined) return { refused: { code: 'challenge_invalid' } };
  const { browser } = opened;
  const from = fromOf(ask.request, addressOf);
  const fact = { actor: null, subject: null, ...originOf(from), detail: { use: 'mail' } } as const;
  const attempt: Attempt = { parts, ask, input, browser, from };
  const done = await limitedAttempt<Done>(
    limit,
    { name: `mail login ${browser}`, address: from.address },
    () => store.lines.change<Done>(undefined, () => confirmOnce(attempt)),
    { wrong: wrongCode, onLimited: () => audit.note({ type: 'login.limited', ...fact }) },
  );
  if (done === wrongCode) audit.note({ type: 'login.failed', ...fact });
  const isOpened = 'content' in done;
  if ('ok' in done) observe({ kind: 'login-judged', outcome: 'limited' });
  else if (isOpened || done === wrongCode)
    observe({ kind: 'login-judged', outcome: isOpened ? 'succeeded' : 'failed' });
  return 'ok' in done ? refusedBy(done) : done;
}

type Attempt = {
  readonly parts: AccountParts;
  readonly ask: Ask;
  readonly input: Confirmation;
  readonly browser: string;
  readonly from: From;
};

async function confirmOnce(attempt: Attempt): Promise<Done | Overtaken> {
  const { parts, input, browser } = attempt;
  const { store, findUser, clock } = parts;
  const at = clock();
  const found = await findCode(store, input.code, loginPurposes, at, browser);
  if (found === undefined) return wrongCode;
  const owner = await findUser.byEmail(found.email);
  // An account that got the mail may be gone, or have another address; one may have been made since for an address without one.
  if (found.userId !== null && owner?.user.id !== found.userId) return wrongCode;
  if (owner === undefined) return registerNewcomer(attempt, found);
  return owner.user.disabled ? wrongCode : enter(attempt, found, owner, at);
}

async function enter(
  { parts, input, from }: Attempt,
  found: FoundCode,
  owner: FoundUser,
  at: number,
): Promise<Done | Overtaken> {
  const { store, sessions, audit, challenges } = parts;
  const { user } = owner;
  const password = await readPassword(store, user.id);
  const stored = await readFactor(store, user.id);
  const proven = await proveAddress(parts, owner, { from, at, reason: 'login.succeeded' });
  const { isClaimed } = proven;
  const hash = isClaimed ? null : (password?.hash ?? null);
  const ends = isClaimed ? await sessions.endOfUser(user.id, null) : [];
  const changes = [
    found.removal,
    ...(await removeCodes(store, user.id, loginPurposes, found.removal.id)),
    ...proven.changes,
    ...ends,
    // As every login does, so that it never overlaps a change of the password or of the factor unnoticed.
    passwordChange(user.id, password, hash, Math.max(at, password?.row.updatedAt ?? 0)),
  ];
  const fact = { actor: user.id, subject: user.id, ...originOf(from) };
  if (isClaimed && password?.hash != null)
    changes.push(audit.entry({ type: 'password.changed', ...fact, detail: { reason: 'login.succeeded' } }));
  let done: Done;
  if (stored === undefined) {
    const opened = await sessions.open(user, { cookie: input.cookie === true, at });
    const isEnded = new Set(ends.map(({ id }) => id));
    changes.push(
      // The oldest sessions make room for this one, and have ended already.
      ...opened.changes.filter(({ id }) => !isEnded.has(id)),
      audit.entry({ type: 'login.succeeded', ...fact, detail: { session: opened.session, method: 'mail' } }),
    );
    done = { content: opened.content, fields: opened.fields };
  } else done = { refused: stepProblem(nextStep(challenges, user.id, hash, stored.factor)) };
  const unit = { changes, events: [] };
  const commit = await store.commit(unit);
  if (commit.outcome !== 'committed') return overtaken(unit, commit);
  await proven.clear();
  return done;
}

async function registerNewcomer(
  { parts, ask, input, from }: Attempt,
  found: FoundCode,
): Promise<Done | Overtaken> {
  const { settings, newAccounts, newId, store } = parts;
  if (settings.registration === 'closed') return wrongCode;
  const { challenge: _challenge, code: _code, cookie = false, name, ...given } = input;
  const id = idFor('account', newId);
  const named = name === undefined ? {} : { name };
  const fields = { email: found.email, ...named, ...accountDefaults, emailVerified: true };
  const judged = await newAccounts.judge({ id, fields }, given);
  if ('refused' in judged) return judged;
  const committed = await newAccounts.commit(ask, store, judged, async (account) => {
    const made = await makeAccount(parts, { ...account, hash: null }, { ...from, cookie, ask });
    return { changes: [found.removal, ...made.changes], result: made.result };
  });
  if (!('result' in committed)) {
    if (!('refused' in committed)) return committed;
    // Another request made an account of the address: the next attempt finds it.
    const { code, errors } = committed.refused;
    const isAddress = code === 'unique_taken' && errors?.[0]?.pointer === '/email';
    return isAddress ? new Overtaken({ table: usersTable, id }) : committed;
  }
  const { opened } = committed.result;
  // The hook took the address for unverified.
  if (opened === null) return { refused: { code: 'email_unverified' } };
  return { content: opened.content, fields: opened.fields };
}
