/**
 * `/senders`: whose webhooks are received here (§4.14), for administrators. Senders are declared in the configuration, so nothing of them is
 * written here but their secrets (rotate-secret.ts).
 */
import { permission } from '../../../model/access.ts';
import { contentTag } from '../../program/document.ts';
import type { Ask, Operation, Resource, Standing } from '../../resource.ts';
import type { SenderResourcesOptions } from './options.ts';
import { rotateSenderSecretResource } from './rotate-secret.ts';
import { shownSender } from './shown-sender.ts';

type Shown = Standing & { readonly content: string; readonly tag: string };

const cacheControl = 'private, no-cache';
const missing: Shown = { exists: false, visible: false, permitted: false, content: '', tag: '' };

export function senderResources(options: SenderResourcesOptions): readonly Resource[] {
  const { base, senders, secrets, clock } = options;
  const path = `${base}/senders`;
  const textOf = (name: string): string | undefined => {
    const sender = senders.get(name);
    if (sender === undefined) return undefined;
    return JSON.stringify(shownSender(sender, `${base}/webhooks/${name}`, secrets, clock()));
  };
  const list = (): Shown => {
    const items = [...senders.keys()].map(textOf);
    return shown(`{"items":[${items.join(',')}],"nextCursor":null}`);
  };
  const one = (ask: Ask): Shown => {
    const text = textOf(ask.captures[0] ?? '');
    return text === undefined ? missing : shown(text);
  };
  return [
    resource(path, list),
    resource(`${path}/{name}`, one),
    rotateSenderSecretResource(options, `${path}/{name}/rotate-secret`),
  ];
}

function resource(pattern: string, standing: (ask: Ask) => Shown): Resource {
  const operation: Operation<Shown> = {
    permission: (principal) => permission('administrator', 'read', principal),
    standing,
    validators: (_ask, { tag }) => ({ tag, modifiedAt: null, cacheControl }),
    represent: (_ask, { content, tag }) => ({
      content,
      mediaType: 'application/json',
      validators: { tag, modifiedAt: null },
      cacheControl,
    }),
  };
  return {
    pattern,
    operations: new Map([['GET', operation as Operation]]),
    constantFields: [],
    offers: ['application/json'],
  };
}

function shown(content: string): Shown {
  return { exists: true, visible: true, permitted: true, content, tag: contentTag(content) };
}
