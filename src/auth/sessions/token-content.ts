/** What a login, a registration and a refresh answer with (§2.3), the access token in it signed now. */
import type { User } from '../tables.ts';
import type { AccessTokens } from '../tokens/access-token.ts';
import type { TokenContent } from './sessions.ts';
import { principalOf } from './user-principal.ts';

export type ContentParts = {
  readonly user: User;
  readonly session: string;
  readonly refreshToken: string;
  /** Milliseconds since the epoch, as is the next. */
  readonly at: number;
  /** When the session ends, which the token does not outlive. */
  readonly endsAt: number;
};

/** @throws Error for a disabled account, for which nothing may be signed */
export async function tokenContent(tokens: AccessTokens, parts: ContentParts): Promise<TokenContent> {
  const { user, session, refreshToken, at, endsAt } = parts;
  const principal = principalOf(user);
  if (principal === undefined) throw new Error('a token for a disabled account');
  const claims = { user: user.id, session, scopes: [...principal.scopes] };
  const { token, expiresIn } = await tokens.sign(claims, at, endsAt);
  return { token, expiresIn, refreshToken, user: { id: user.id, email: user.email } };
}
