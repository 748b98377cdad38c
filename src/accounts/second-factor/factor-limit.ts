/**
 * The limit on wrong codes (§5.8): the limit of logins, with a counter of its own for each account, so that someone who does not know
 * the password cannot use up the attempts of someone who does. The counter of the address is shared with logins.
 */
import type { Allowance } from '../../http/message.ts';
import { digestOf } from '../digest.ts';
import type { LoginLimit } from '../login-limit.ts';

export type Wrong = {
  readonly ok: false;
  readonly problem: 'second_factor_invalid' | 'rate_limited';
  readonly allowance?: Allowance;
};

export const wrongFactor: Wrong = { ok: false, problem: 'second_factor_invalid' };

/**
 * Runs one attempt: counted before anything is compared, and given back unless its result is `wrongFactor`.
 * @param onLimited called for the first refusal in the window @throws StoreUnavailable
 */
export async function limitedAttempt<T>(
  limit: LoginLimit,
  who: { readonly userId: string; readonly address: string },
  attempt: () => Promise<T | Wrong>,
  onLimited: () => void,
): Promise<T | Wrong> {
  const begun = await limit.begin(digestOf(`second factor ${who.userId}`), who.address);
  if (!begun.ok) {
    if (begun.first) onLimited();
    return { ok: false, problem: 'rate_limited', allowance: begun.allowance };
  }
  let result: T | Wrong | undefined;
  try {
    result = await attempt();
    return result;
  } finally {
    if (result === wrongFactor) begun.failed();
    else await begun.succeeded();
  }
}
