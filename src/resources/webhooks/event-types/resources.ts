/**
 * `/event-types` (surface "Webhooks out"): the types that endpoints may ask for, each with the schema of its object and a sample. Types of
 * collections that the caller could never read are not told of: their samples would say what nobody showed it.
 */
import { permission } from '../../../model/access.ts';
import { isAdministrator, type Principal } from '../../../model/principal.ts';
import {
  type EventType,
  type EventTypes,
  sampleEvent,
} from '../../../webhooks/outbound/event-types/event-types.ts';
import { contentTag } from '../../program/document.ts';
import type { Ask, Operation, Representation, Resource, Standing } from '../../resource.ts';

type Shown = Standing & { readonly content: string; readonly tag: string };

const cacheControl = 'private, no-cache';
const missing: Shown = { exists: false, visible: false, permitted: false, content: '', tag: '' };

/** @param path `/api/v1/event-types` */
export function eventTypeResources(eventTypes: EventTypes, path: string): readonly Resource[] {
  const texts = new Map([...eventTypes.values()].map((type) => [type.type, textOf(type)] as const));
  const list = (ask: Ask): Shown => {
    const items: string[] = [];
    for (const type of eventTypes.values()) {
      if (isTold(type, ask.principal)) items.push(texts.get(type.type) ?? '');
    }
    return shown(`{"items":[${items.join(',')}],"nextCursor":null}`);
  };
  const one = (ask: Ask): Shown => {
    const type = eventTypes.get(ask.captures[0] ?? '');
    if (type === undefined || !isTold(type, ask.principal)) return missing;
    return shown(texts.get(type.type) ?? '');
  };
  return [resource(path, list), resource(`${path}/{type}`, one)];
}

function resource(pattern: string, standing: (ask: Ask) => Shown): Resource {
  const operation: Operation<Shown> = {
    permission: (principal) => permission({ bearing: 'webhooks', rule: 'principal' }, 'read', principal),
    standing,
    validators: (_ask, { tag }) => ({ tag, modifiedAt: null, cacheControl }),
    represent: (_ask, { content, tag }): Representation => ({
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

function isTold({ collection }: EventType, principal: Principal): boolean {
  if (collection === undefined || isAdministrator(principal)) return true;
  return permission(collection.access.read, 'read', principal) !== 'denied';
}

function shown(content: string): Shown {
  return { exists: true, visible: true, permitted: true, content, tag: contentTag(content) };
}

function textOf(type: EventType): string {
  const { description, schema } = type;
  const head = JSON.stringify({ type: type.type, description, schema: schema ?? null });
  return `${head.slice(0, -1)},"sample":${sampleEvent(type) ?? 'null'}}`;
}
