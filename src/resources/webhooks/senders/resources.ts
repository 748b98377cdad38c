/**
 * `/senders`: whose webhooks are received here (§4.14), for administrators. Senders are declared in the configuration, so nothing of them is
 * written here but their secrets (rotate-secret.ts).
 */
import type { DeclaredSender } from '../../../config/senders.ts';
import { type Permission, permission } from '../../../model/access.ts';
import type { Principal } from '../../../model/principal.ts';
import type { Ask, Resource } from '../../resource.ts';
import { type DeclaredItem, declaredList } from '../declared-list.ts';
import { missing, type Shown, shown, shownResource } from '../shown-resource.ts';
import type { SenderResourcesOptions } from './options.ts';
import { rotateSenderSecretResource } from './rotate-secret.ts';
import { shownSender } from './shown-sender.ts';

export function senderResources(options: SenderResourcesOptions): readonly Resource[] {
  const { base, senders, secrets, clock } = options;
  const path = `${base}/senders`;
  const textOf = (sender: DeclaredSender): string =>
    JSON.stringify(shownSender(sender, `${base}/webhooks/${sender.name}`, secrets, clock()));
  const items = (): readonly DeclaredItem[] =>
    [...senders.values()].map((sender) => ({ name: sender.name, text: textOf(sender) }));
  const one = (ask: Ask): Shown => {
    const sender = senders.get(ask.captures[0] ?? '');
    return sender === undefined ? missing : shown(textOf(sender));
  };
  return [
    declaredList(path, mayRead, items, options.listLimits),
    shownResource(`${path}/{name}`, mayRead, one),
    rotateSenderSecretResource(options, `${path}/{name}/rotate-secret`),
  ];
}

function mayRead(principal: Principal): Permission {
  return permission('administrator', 'read', principal);
}
