/**
 * POST /auth/login/passkey/options and /auth/login/passkey (§5.8): logins by passkey, as the second step of a login by password, and alone
 * with a discoverable passkey that verifies its user. The options carry a challenge for the authenticator in a sealed token, so that
 * asking for them stores nothing.
 */
import { Type } from 'typebox';
import { actionResource } from '../../../kernel/action.ts';
import type { Resource } from '../../../kernel/resource.ts';
import type { Change } from '../../../store/store.ts';
import { type AccountParts, type Attempted, commitRetried } from '../../account-parts.ts';
import { accountsTag, cookieSchema, exampleChallenge, tokensOutput } from '../../account-schemas.ts';
import { passwordChange, passwordsTable, readPassword, type User } from '../../account-tables.ts';
import { type From, fromOf, originOf } from '../../audit.ts';
import { finishedDone, passwordMark } from '../../login.ts';
import type { Opened } from '../../sessions/sessions.ts';
import type { ChallengeContents, OpenedChallenge } from '../challenge-tokens.ts';
import { factorChange, readFactor, type StoredFactor } from '../factor-row.ts';
import {
  type Assertion,
  assertionSchema,
  authenticationOptions,
  exampleAssertion,
  type PasskeyOptions,
  passkeyRequestOutput,
  type UsedPasskey,
  usePasskey,
  userOfHandle,
} from './webauthn.ts';

const shared = { tag: accountsTag, ignoresCredentials: true } as const;

export function passkeyLoginResources(parts: AccountParts): readonly Resource[] {
  const { base, settings, addressOf, isCrossSite } = parts;
  const begin = actionResource(
    {
      ...shared,
      path: `${base}/auth/login/passkey/options`,
      id: 'beginPasskeyLogin',
      summary: 'Get the options for a login by passkey',
      description:
        'Without a `challenge`: any discoverable passkey, which verifies its user. With the `challenge` of a login by password: a passkey of that account.',
      input: {
        name: 'PasskeyLoginOptions',
        schema: Type.Object({ challenge: Type.Optional(Type.String()) }),
        example: { challenge: exampleChallenge },
        optional: true,
      },
      output: passkeyRequestOutput,
      codes: ['challenge_invalid'],
      handler: async (_ask, { challenge }) => {
        const begun = await beginPasskeyLogin(parts, challenge);
        return begun === undefined ? { refused: { code: 'challenge_invalid' } } : { content: { ...begun } };
      },
    },
    settings,
  );
  const finish = actionResource(
    {
      ...shared,
      path: `${base}/auth/login/passkey`,
      id: 'loginByPasskey',
      summary: 'Log in by passkey',
      description: 'A challenge works once.',
      input: {
        name: 'PasskeyLogin',
        schema: Type.Object({ challenge: Type.String(), response: assertionSchema, cookie: cookieSchema }),
        example: { challenge: exampleChallenge, response: exampleAssertion },
      },
      output: tokensOutput,
      fields: ['Set-Cookie'],
      codes: [
        ...(settings.verifiedEmailRequired ? (['email_unverified'] as const) : []),
        ...(['challenge_invalid', 'cross_site_request', 'passkey_invalid'] as const),
      ],
      handler: async (ask, { challenge, response, cookie = false }) => {
        if (cookie && isCrossSite(ask.request)) return { refused: { code: 'cross_site_request' } };
        const from = fromOf(ask.request, addressOf);
        return finishedDone(await finishPasskeyLogin(parts, { challenge, response, cookie, ...from }));
      },
    },
    settings,
  );
  return [begin, finish];
}

/** Octets of a challenge for an authenticator; WebAuthn asks for at least 16. */
export const challengeBytes = 32;

export type PasskeyRequest = {
  readonly challenge: string;
  /** Seconds. */
  readonly expiresIn: number;
  /** For `navigator.credentials`, in JSON. */
  readonly options: PasskeyOptions;
};

type PasskeyLogin =
  | { readonly ok: true; readonly opened: Opened }
  | {
      readonly ok: false;
      readonly problem: 'challenge_invalid' | 'passkey_invalid' | 'email_unverified' | 'unavailable';
    };

const voidChallenge: PasskeyLogin = { ok: false, problem: 'challenge_invalid' };
const wrongPasskey: PasskeyLogin = { ok: false, problem: 'passkey_invalid' };
const unavailable: PasskeyLogin = { ok: false, problem: 'unavailable' };

/**
 * @param step the challenge of a login by password; undefined: a login by passkey alone
 * @returns undefined if that challenge is not valid @throws StoreUnavailable
 */
async function beginPasskeyLogin(
  parts: AccountParts,
  step: string | undefined,
): Promise<PasskeyRequest | undefined> {
  const { challenges, random, store, relyingParty } = parts;
  const challenge = random(challengeBytes).toString('base64url');
  let content: ChallengeContents['passkeyLogin'] = { challenge, login: null };
  let stored: StoredFactor | undefined;
  if (step !== undefined) {
    const login = challenges.open('login', step);
    if (login === undefined || (await challenges.isUsed(login))) return undefined;
    stored = await readFactor(store, login.user);
    content = { challenge, login: { id: login.id, user: login.user, password: login.password } };
  }
  const passkeys = step === undefined ? null : (stored?.factor.passkeys ?? []);
  const timeoutMs = challenges.seconds * 1000;
  return {
    challenge: challenges.issue('passkeyLogin', content),
    expiresIn: challenges.seconds,
    options: await authenticationOptions(relyingParty(), { challenge, passkeys, timeoutMs }),
  };
}

/** @throws StoreUnavailable */
async function finishPasskeyLogin(
  parts: AccountParts,
  step: From & {
    readonly challenge: string;
    readonly response: Assertion;
    readonly cookie: boolean;
  },
): Promise<PasskeyLogin> {
  const { store, challenges } = parts;
  const challenge = challenges.open('passkeyLogin', step.challenge);
  if (challenge === undefined) return voidChallenge;
  const user = challenge.login?.user ?? userOfHandle(step.response.response.userHandle);
  if (user === undefined) return wrongPasskey;
  const attempt = () => tryOnce(parts, challenge, user, step);
  return commitRetried<PasskeyLogin>(store, { table: passwordsTable, id: user }, attempt, () => unavailable);
}

async function tryOnce(
  parts: AccountParts,
  challenge: OpenedChallenge<'passkeyLogin'>,
  userId: string,
  step: From & { readonly response: Assertion; readonly cookie: boolean },
): Promise<Attempted<PasskeyLogin>> {
  const { store, findUser, clock, challenges, audit, relyingParty } = parts;
  const at = clock();
  const { login } = challenge;
  const steps = login === null ? [challenge] : [challenge, login];
  const found = await findUser.byId(userId);
  const password = await readPassword(store, userId);
  const stored = await readFactor(store, userId);
  // After the factor: a use of the challenge also changed the sign counter, and is reported as such.
  for (const each of steps) if (await challenges.isUsed(each)) return { refused: voidChallenge };
  if (login !== null && passwordMark(password?.hash) !== login.password) return { refused: voidChallenge };
  const used =
    stored === undefined
      ? undefined
      : await usePasskey(relyingParty(), stored.factor, step.response, {
          ...{ challenge: challenge.challenge, userVerified: login === null, at },
        });
  if (found === undefined || found.user.disabled || stored === undefined || used === undefined) {
    const fact = { type: 'login.failed', actor: null, subject: found?.user.id ?? null } as const;
    audit.note({ ...fact, ...originOf(step), detail: { use: 'passkey' } });
    return { refused: wrongPasskey };
  }
  if (parts.settings.verifiedEmailRequired && !found.user.emailVerified) {
    return { refused: { ok: false, problem: 'email_unverified' } };
  }
  const opened = await parts.sessions.open(found.user, { cookie: step.cookie, at });
  const changes = [
    ...factorChange(userId, stored, used.next, at),
    ...steps.map((each) => challenges.use(each)),
    ...(password === undefined ? [] : [passwordChange(userId, password, password.hash, at)]),
    ...opened.changes,
    entryOf(parts, { user: found.user, used, opened, from: step }),
  ];
  return { changes, result: { ok: true, opened } };
}

function entryOf(
  { audit }: AccountParts,
  login: {
    readonly user: User;
    readonly used: UsedPasskey;
    readonly opened: Opened;
    readonly from: From;
  },
): Change {
  const { user, used, opened, from } = login;
  return audit.entry({
    ...{ type: 'login.succeeded', actor: user.id, subject: user.id },
    ...originOf(from),
    detail: { session: opened.session, method: 'passkey', passkey: used.passkey.id },
  });
}
