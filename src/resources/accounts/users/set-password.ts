/**
 * POST to `/users/{id}/password`: an administrator sets the password of an account, which ends all of its sessions and makes every
 * code that was mailed to it void. One's own password is changed at `/auth/password`, which asks for the old one.
 */
import { Type } from 'typebox';
import { commitRetried } from '../../../auth/accounts/commit-retried.ts';
import { passwordChange, readPassword } from '../../../auth/accounts/password-row.ts';
import { newPasswordFault } from '../../../auth/passwords/new-password.ts';
import { passwordsTable } from '../../../auth/tables.ts';
import { actionResource, type Done } from '../../action/action.ts';
import type { Served } from '../../collection/served.ts';
import { memberStanding } from '../../collection/standing.ts';
import type { Ask, Resource } from '../../resource.ts';
import { administratorsOnly } from '../administrators-only.ts';
import { factOfAsk } from '../fact-of-ask.ts';
import type { Leavings } from './leavings.ts';
import type { UserResourcesOptions } from './options.ts';

const lost: Done = { refused: { code: 'unavailable' } };

export function setPasswordResource(
  options: UserResourcesOptions,
  served: Served,
  leavings: Leavings,
): Resource {
  return actionResource({
    path: `${served.path}/{id}/password`,
    schema: Type.Object({ password: Type.String() }),
    limits: options.limits,
    permission: administratorsOnly,
    standing: (ask) => memberStanding(served, ask, 'update'),
    act: async (ask, content) => {
      const password = String(content.password);
      const fault = newPasswordFault(password, options);
      if (fault !== undefined) {
        const errors = [{ pointer: '/password', message: fault }];
        return { refused: { code: 'validation_failed', errors } };
      }
      return setPassword(options, served, leavings, ask, await options.hashPassword(password));
    },
  });
}

/** Where the account is deleted meanwhile, its password is as dead as the rest of what it leaves. */
async function setPassword(
  options: UserResourcesOptions,
  { store, clock }: Served,
  leavings: Leavings,
  ask: Ask,
  hash: string,
): Promise<Done> {
  const id = ask.captures[0] ?? '';
  const fact = factOfAsk(ask, options.addressOf, { type: 'password.changed', subject: id });
  const attempt = async () => {
    const before = await readPassword(store, id);
    const at = Math.max(clock(), before?.row.updatedAt ?? 0);
    const changes = [
      passwordChange(id, before, hash, at),
      ...(await options.sessions.endOfUser(id, null)),
      ...(await leavings.codes(id)),
      options.audit.entry(fact),
    ];
    return { changes, result: { content: null } };
  };
  return commitRetried<Done>(store, { table: passwordsTable, id }, attempt, () => lost);
}
