/**
 * Challenges: short-lived tokens that carry a client from one request to the next, such as from a correct password to the code of the
 * second factor. A token is sealed under a secret that all processes share, and stored only when it is used, so that unfinished
 * logins cost no storage. The unit that a token enables also writes its row, so it works once, in whichever process it arrives.
 */
import { openText, sealText } from '../../kernel/sealed-text.ts';
import type { Services } from '../../store/capabilities.ts';
import { type Change, keptRow } from '../../store/store.ts';

/** By the id of a used challenge, until it would have expired. */
export const usedChallengesTable = 'used_challenges';

/** What each kind of challenge carries. */
export type ChallengeContents = {
  /** A login whose first factor was right. */
  readonly login: {
    readonly user: string;
    /** Digest of the password row's hash: a new password makes the challenge void. */
    readonly password: string;
  };
  /** A TOTP secret that waits for its first code. */
  readonly totp: {
    readonly user: string;
    readonly secret: string;
    /** True if the account had a factor when the request was proven. */
    readonly hadFactor: boolean;
  };
  /** A passkey that is being added; `challenge`, here and below, is what the authenticator signs. */
  readonly passkey: { readonly user: string; readonly challenge: string; readonly hadFactor: boolean };
  /** A login by passkey; `login`: the first step by password, null without one. */
  readonly passkeyLogin: {
    readonly challenge: string;
    readonly login: { readonly id: string; readonly user: string; readonly password: string } | null;
  };
  /** A passkey that becomes the whole login of an account, which registers or accepts an invitation. */
  readonly firstPasskey: { readonly user: string; readonly challenge: string };
  /** A login by mail: the code in the mail is good with this challenge alone, so in the browser that asked for it. */
  readonly mailLogin: { readonly browser: string };
  /** A proof by passkey for a change of the factor. */
  readonly passkeyProof: { readonly user: string; readonly challenge: string };
};

export type ChallengePurpose = keyof ChallengeContents;

export type OpenedChallenge<P extends ChallengePurpose> = ChallengeContents[P] & {
  readonly id: string;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
};

export type ChallengeTokens = {
  /** @param forSeconds its lifetime; default `seconds` */
  issue<P extends ChallengePurpose>(purpose: P, content: ChallengeContents[P], forSeconds?: number): string;
  /** Returns undefined for a token that is unreadable, expired or of another purpose. */
  open<P extends ChallengePurpose>(purpose: P, token: string): OpenedChallenge<P> | undefined;
  /** @throws StoreUnavailable */
  isUsed(challenge: { readonly id: string }): Promise<boolean>;
  /** The change that uses the challenge up; the unit is superseded if another one did. */
  use(challenge: { readonly id: string }): Change;
  readonly seconds: number;
};

const idBytes = 16;
/** The longest token, with an account's id and a secret in it, has about 400 characters. */
const tokenCharactersMax = 4096;

/** @param secret shared by all processes of the store */
export function createChallengeTokens(services: Services, secret: string): ChallengeTokens {
  const { store, clock, random } = services;
  const { secondFactorChallengeSeconds: seconds } = services.settings;
  const sealOf = (purpose: ChallengePurpose) => ({ secret, purpose: `challenge ${purpose}`, id: purpose });
  return {
    seconds,
    issue(purpose, content, forSeconds = seconds) {
      const id = random(idBytes).toString('base64url');
      const text = JSON.stringify({ ...content, id, expiresAt: clock() + forSeconds * 1000 });
      return sealText(text, sealOf(purpose), random);
    },
    open<P extends ChallengePurpose>(purpose: P, token: string) {
      if (token.length > tokenCharactersMax) return undefined;
      const text = openText(token, sealOf(purpose));
      if (text === undefined) return undefined;
      const opened = JSON.parse(text) as OpenedChallenge<P>;
      return opened.expiresAt <= clock() ? undefined : opened;
    },
    async isUsed({ id }) {
      return (await store.read(usedChallengesTable, id)) !== undefined;
    },
    use({ id }) {
      const now = clock();
      return {
        table: usedChallengesTable,
        id,
        expect: { absent: true },
        next: keptRow('{}', null, now, now),
      };
    },
  };
}
