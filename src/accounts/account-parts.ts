/** The parts that the use cases of accounts share besides the services of the program. accounts.ts creates them once. */
import type { ResolvedAccounts } from '../config/accounts.ts';
import type { Services } from '../store/capabilities.ts';
import type { Change } from '../store/store.ts';
import type { AccountMail } from './account-mail.ts';
import type { AddressOf, Audit } from './audit-fact.ts';
import type { CrossSiteCheck } from './cross-site.ts';
import type { LoginLimit } from './login-limit.ts';
import type { FactorMail } from './mail-texts.ts';
import type { CheckPassword } from './passwords/check-password.ts';
import type { PasswordHasher } from './passwords/hasher.ts';
import type { ChallengeTokens } from './second-factor/challenge-tokens.ts';
import type { FactorRule } from './second-factor/factor-rule.ts';
import type { RelyingParty } from './second-factor/passkeys/relying-party.ts';
import type { Sessions } from './sessions/sessions.ts';
import type { AccessTokens } from './tokens/access-token.ts';
import type { FindUser } from './users/find-user.ts';
import type { NewAccounts } from './users/new-accounts.ts';

export type AccountParts = Services & {
  /** `/api/v1` */
  readonly base: string;
  /** Name of the application, as people see it. */
  readonly title: string;
  /** The declaration of accounts. */
  readonly accounts: ResolvedAccounts;
  /** The origin that clients see, as far as it is known. */
  readonly origin: () => string;
  readonly addressOf: AddressOf;
  readonly isCrossSite: CrossSiteCheck;
  readonly audit: Pick<Audit, 'entry' | 'note'>;
  readonly findUser: FindUser;
  readonly newAccounts: NewAccounts;
  readonly hasher: PasswordHasher;
  readonly limit: LoginLimit;
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
