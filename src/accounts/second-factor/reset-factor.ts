/**
 * POST {base}/users/{id}/reset-second-factor: an administrator removes the second factor of an account whose owner lost it (§5.8). The
 * lost device may be in other hands, so all sessions of the account end. Its API keys stay.
 */
import { actionResource, type Done } from '../../kernel/action.ts';
import { pathParameter } from '../../kernel/documentation.ts';
import type { Ask, Resource } from '../../kernel/resource.ts';
import { usersCollection } from '../account-collections.ts';
import type { AccountParts } from '../account-parts.ts';
import { administratorsOnly } from '../account-schemas.ts';
import { passwordsTable, usersTable } from '../account-tables.ts';
import { factOfAsk } from '../audit-fact.ts';
import { commitRetried } from '../commit-retried.ts';
import { passwordChange, readPassword } from '../passwords/password-row.ts';
import { factorChange, noFactor, readFactor } from './factor-row.ts';

export function resetFactorResource(parts: AccountParts): Resource {
  const { base, settings, findUser } = parts;
  return actionResource(
    {
      path: `${base}/${usersTable}/{id}/reset-second-factor`,
      parameters: [pathParameter('id', 'Id of the account.')],
      tag: usersCollection,
      name: 'SecondFactorReset',
      noun: 'the reset of a second factor',
      id: 'resetSecondFactor',
      summary: 'Remove the second factor of an account',
      description:
        'Administrators only. Removes the authenticator application, the passkeys and the recovery codes, and ends all sessions of the account. 204 also if there is no second factor.',
      codes: [],
      permission: administratorsOnly,
      standing: async ({ captures: [id = ''] }) => {
        const exists = (await findUser.byId(id)) !== undefined;
        return { exists, visible: true, permitted: true };
      },
      mayBeMissing: true,
      handler: (ask) => resetFactor(parts, ask),
    },
    settings,
  );
}

const unavailable: Done = { refused: { code: 'unavailable' } };
const missing: Done = { refused: { code: 'not_found' } };

function resetFactor(parts: AccountParts, ask: Ask): Promise<Done> {
  const { store, clock, findUser, sessions, audit, addressOf, factorMail } = parts;
  const id = ask.captures[0] ?? '';
  const attempt = async () => {
    const found = await findUser.byId(id);
    if (found === undefined) return { refused: missing };
    const before = await readFactor(store, id);
    if (before === undefined) return { refused: { content: null } };
    const password = await readPassword(store, id);
    const at = Math.max(clock(), password?.row.updatedAt ?? 0);
    const changes = [
      ...factorChange(id, before, noFactor, at),
      passwordChange(id, password, password?.hash ?? null, at),
      ...(await sessions.endOfUser(id, null)),
      audit.entry(factOfAsk(ask, addressOf, { type: 'second_factor.reset', subject: id })),
      ...factorMail(found.user, 'reset', at),
    ];
    return { changes, result: { content: null } };
  };
  return commitRetried<Done>(store, { table: passwordsTable, id }, attempt, () => unavailable);
}
