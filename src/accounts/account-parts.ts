/**
 * The parts that the use cases of accounts share beside the services of the program, which accounts.ts creates once, and how a use case
 * commits its change.
 */
import type { ResolvedAccounts } from '../config/accounts.ts';
import type { CallerAddress } from '../kernel/rate-limit/caller-address.ts';
import type { Services } from '../store/capabilities.ts';
import { overtaken } from '../store/lines.ts';
import type { Change, Commit, RowName, Store, Unit } from '../store/store.ts';
import type { AccountMail } from './account-mail.ts';
import type { AttemptLimit } from './attempt-limit.ts';
import type { Audit } from './audit.ts';
import type { FactorMail } from './mail-texts.ts';
import type { CheckPassword } from './passwords/check-password.ts';
import type { PasswordHasher } from './passwords/hasher.ts';
import type { ChallengeTokens } from './second-factor/challenge-tokens.ts';
import type { FactorRule } from './second-factor/factor-row.ts';
import type { RelyingParty } from './second-factor/passkeys/webauthn.ts';
import type { CrossSiteCheck } from './sessions/cookie.ts';
import type { Sessions } from './sessions/sessions.ts';
import type { AccessTokens } from './tokens/access-token.ts';
import type { Administering } from './users/administering.ts';
import type { NewAccounts } from './users/new-accounts.ts';
import type { FindUser } from './users/user-row.ts';

export type AccountParts = Services & {
  /** `/api/v1` */
  readonly base: string;
  /** Name of the application, as people see it. */
  readonly title: string;
  /** The declaration of accounts. */
  readonly accounts: ResolvedAccounts;
  /** The origin that clients see, as far as it is known. */
  readonly origin: () => string;
  readonly addressOf: CallerAddress;
  readonly isCrossSite: CrossSiteCheck;
  readonly audit: Pick<Audit, 'entry' | 'note'>;
  readonly administering: Administering;
  readonly findUser: FindUser;
  readonly newAccounts: NewAccounts;
  readonly hasher: PasswordHasher;
  readonly limit: AttemptLimit;
  readonly checkPassword: CheckPassword;
  readonly tokens: AccessTokens;
  readonly sessions: Sessions;
  readonly factorRule: FactorRule;
  readonly challenges: ChallengeTokens;
  readonly relyingParty: () => RelyingParty;
  readonly mail: AccountMail;
  readonly factorMail: FactorMail;
};

/** The changes that make a unit count for the endpoints that are sent to (webhooks/sending/fan-out/generation.ts). */
export type EndpointGeneration = {
  readonly generationChanges: () => readonly Change[];
};

export type Attempted<T> =
  | { readonly changes: Unit['changes']; readonly result: T }
  | { readonly refused: T };

/**
 * @param row the changed row, if known: changes of one row are made in turn
 * @param attempt computes the unit from the rows, or refuses; called again after each lost race
 * @param failed computes the result if the unit broke a rule of the store, such as a unique field
 * @throws StoreUnavailable
 */
export function commitRetried<T>(
  store: Pick<Store, 'commit' | 'lines'>,
  row: RowName | undefined,
  attempt: () => Promise<Attempted<T>>,
  failed: (commit: Exclude<Commit, { outcome: 'committed' | 'superseded' }>) => T,
): Promise<T> {
  return store.lines.change(row, async () => {
    const attempted = await attempt();
    if ('refused' in attempted) return attempted.refused;
    const unit = { changes: attempted.changes, events: [] };
    const commit = await store.commit(unit);
    if (commit.outcome === 'committed') return attempted.result;
    return commit.outcome === 'superseded' ? overtaken(unit, commit) : failed(commit);
  });
}
